//! Small views without data access.

pub mod chart;
pub mod filters;
pub mod frame;
pub mod linked;
pub mod listing;
pub mod made_of;
pub mod moment;
pub mod needs;
pub mod posted;
pub mod secret;
pub mod state;
pub mod submissions;
pub mod told;
pub mod values;
pub mod views;
pub mod waiting;
