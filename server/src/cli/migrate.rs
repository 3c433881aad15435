//! `keyturn migrate`: makes or updates the database.

use super::report::{Failure, Said};
use crate::{
    config::Config,
    open::{self, For},
};
use serde_json::json;

pub(super) async fn run(config: &Config) -> Result<Said, Failure> {
    open::open(config, For::Serving(config.listen)).await?;
    let database = config.database.to_string();
    Ok(Said::new(format!("{database} is up to date."), json!({ "database": database })))
}
