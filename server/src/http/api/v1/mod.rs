//! Version 1 of the API: one endpoint a file, with its types, its handler and its description.

mod act_on_resource;
mod approve_request;
mod cancel_request;
mod change_hook;
mod change_notification;
mod create_hook;
mod create_notification;
mod create_request;
mod create_token;
mod delete_resource;
mod deliver_event;
mod end_hook_secret;
mod get_chain;
mod get_delivery;
mod get_duplicates;
mod get_guard;
mod get_hook;
mod get_me;
mod get_notification;
mod get_offering;
mod get_request;
mod get_resource;
mod keyed;
mod list_deliveries;
mod list_hooks;
mod list_notification_deliveries;
mod list_notifications;
mod list_offerings;
mod list_orphans;
mod list_requests;
mod list_resources;
mod list_submissions;
mod list_team_requests;
mod list_tokens;
mod look_up_key;
mod ping_notification;
mod rehearse_window;
mod reject_request;
mod remove_hook;
mod remove_notification;
mod report_work;
mod resend_notification;
mod resolve_request;
mod retry_request;
mod reveal_secret;
mod revoke_token;
mod rotate_hook;
mod rotate_notification;
mod stream_events;
mod test_hook;
mod update_resource;

use crate::http::state::AppState;
use axum::{
    Json,
    http::header,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list_offerings::list_offerings))
        .routes(routes!(get_offering::get_offering))
        .routes(routes!(list_team_requests::list_team_requests, create_request::create_request))
        .routes(routes!(list_requests::list_requests))
        .routes(routes!(get_request::get_request))
        .routes(routes!(stream_events::stream_events))
        .routes(routes!(list_submissions::list_submissions))
        .routes(routes!(get_chain::get_chain))
        .routes(routes!(look_up_key::look_up_key))
        .routes(routes!(cancel_request::cancel_request))
        .routes(routes!(retry_request::retry_request))
        .routes(routes!(resolve_request::resolve_request))
        .routes(routes!(approve_request::approve_request))
        .routes(routes!(reject_request::reject_request))
        .routes(routes!(list_resources::list_resources))
        .routes(routes!(
            get_resource::get_resource,
            update_resource::update_resource,
            delete_resource::delete_resource
        ))
        .routes(routes!(act_on_resource::act_on_resource))
        .routes(routes!(reveal_secret::reveal_secret))
        .routes(routes!(list_tokens::list_tokens, create_token::create_token))
        .routes(routes!(revoke_token::revoke_token))
        .routes(routes!(list_hooks::list_hooks, create_hook::create_hook))
        .routes(routes!(get_hook::get_hook, change_hook::change_hook, remove_hook::remove_hook))
        .routes(routes!(rotate_hook::rotate_hook))
        .routes(routes!(end_hook_secret::end_hook_secret))
        .routes(routes!(test_hook::test_hook))
        .routes(routes!(list_deliveries::list_deliveries))
        .routes(routes!(get_delivery::get_delivery))
        .routes(routes!(deliver_event::deliver_event))
        .routes(routes!(report_work::report_work))
        .routes(routes!(list_orphans::list_orphans))
        .routes(routes!(list_notifications::list_notifications, create_notification::create_notification))
        .routes(routes!(
            get_notification::get_notification,
            change_notification::change_notification,
            remove_notification::remove_notification
        ))
        .routes(routes!(rotate_notification::rotate_notification))
        .routes(routes!(ping_notification::ping_notification))
        .routes(routes!(list_notification_deliveries::list_notification_deliveries))
        .routes(routes!(resend_notification::resend_notification))
        .routes(routes!(get_me::get_me))
        .routes(routes!(get_guard::get_guard))
        .routes(routes!(get_duplicates::get_duplicates))
        .routes(routes!(rehearse_window::rehearse_window))
}

/// What a reading call shows. It is the caller's own view of this moment, so nobody may keep it.
fn shown(view: &impl Serialize) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], Json(view)).into_response()
}
