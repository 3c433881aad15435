//! What the server puts into a page's context before it renders it. Pages read it through `rpc`, so that the browser
//! gets the same values when it takes the page over.

use domain::{problem::Problem, view::TokenView};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A form that was posted and is shown again with what was typed: after a refusal, or after a login in between.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormState {
    /// What was typed, by field (of the request form `name`, `team`, `labels`, `correlation_id`, `p.<parameter>`); never
    /// a secret.
    pub values: BTreeMap<String, String>,
    /// The ID that the form was sent with, kept for the next try. Empty: a fresh one is made.
    pub request_id: String,
    /// Who the form is shown to, sealed, so that it outlives the session; filled in when it is shown.
    #[serde(default)]
    pub sealed: String,
    /// Why it was not accepted.
    pub problem: Option<Problem>,
    /// Anything else to say above the form.
    pub notice: Option<String>,
    /// The fields with a secret that was typed: it is not kept, and has to be typed again.
    #[serde(default)]
    pub lost: BTreeSet<String>,
}

/// The login and set-up forms after a refusal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryState {
    /// What was typed, by field (`name`, `team`, `link`, `next`, `request_id`); never a password.
    pub values: BTreeMap<String, String>,
    /// A sealed form that waits behind the login; sent back as it is in the hidden field `sealed`.
    pub sealed: Option<String>,
    /// Why it was not accepted.
    pub problem: Option<Problem>,
    /// Anything else to say above the form.
    pub notice: Option<String>,
}

/// What the last plain form post has to say on the page that follows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flash {
    /// Why it was not accepted.
    pub problem: Option<Problem>,
    /// What was done.
    pub notice: Option<String>,
    /// A token that was just made, shown this once.
    pub token: Option<TokenView>,
    /// A hook's secret that was just made, shown this once.
    #[serde(default)]
    pub secret: Option<String>,
    /// A view that was to be saved under a name that another one has.
    #[serde(default)]
    pub replace: Option<ViewNamed>,
}

/// A view that was to be saved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewNamed {
    /// What it was to be called.
    pub name: String,
    /// Whether the team was to see it.
    pub shared: bool,
}

/// The purpose under which a form's owner is sealed: the 16 bytes of the principal's ID.
pub const FORM_OWNER: &str = "form-owner";

#[cfg(feature = "ssr")]
mod on_the_server {
    use domain::problem::Problem;
    use portal::{Caller, Portal};

    /// Who asks for a page or a server function, and of whom. In the context of every one of them.
    #[derive(Debug, Clone)]
    pub struct Asking {
        /// The portal that answers.
        pub portal: Portal,
        /// Who asks, if anybody is logged in.
        pub caller: Option<Caller>,
        /// Turns an error into the problem that the caller is shown, with its status; the same as for the API.
        pub problem: fn(portal::Error) -> Problem,
    }
}

#[cfg(feature = "ssr")]
pub use on_the_server::Asking;
