//! Names to addresses, of which only the allowed ones are ever connected to: a name that changes its address between the
//! check and the connection gains nothing, since the check is made on what is connected to.

use super::AllowList;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// Finds the addresses of a name.
#[async_trait::async_trait]
pub(super) trait Lookup: Send + Sync + fmt::Debug {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// As the machine finds them.
#[derive(Debug)]
pub(super) struct SystemLookup;

#[async_trait::async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// A name has addresses, and none of them is allowed.
#[derive(Debug, thiserror::Error)]
#[error("the destination is not allowed")]
pub(super) struct NotAllowed;

/// The resolver that the client connects by.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) allowed: Arc<AllowList>,
    pub(super) lookup: Arc<dyn Lookup>,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (allowed, lookup) = (Arc::clone(&self.allowed), Arc::clone(&self.lookup));
        Box::pin(async move {
            let name = name.as_str();
            let found = lookup.addresses(name).await?;
            let permitted: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| allowed.permits(Some(name), *address))
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if permitted.is_empty() {
                return Err(NotAllowed.into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}
