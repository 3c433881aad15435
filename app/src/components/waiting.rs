//! What waits for the decision of who looks.

use super::{
    listing::{Cell, Table},
    moment::When,
};
use domain::view::RequestView;
use leptos::prelude::*;

/// Requests that wait for this person's decision; nothing where there are none.
#[component]
pub fn Waiting(
    /// They.
    requests: Vec<RequestView>,
) -> impl IntoView {
    (!requests.is_empty()).then(|| {
        let rows = requests.into_iter().map(|request| view! { <Row request/> }).collect_view();
        view! {
            <section class="note caution" id="waiting" aria-labelledby="waiting-title">
                <h2 id="waiting-title">"Waiting for your decision"</h2>
                <p>"Nothing of these is carried out before somebody approves it. Open one to decide."</p>
                <Table name="Requests that wait" columns=&["Name", "Offering", "Team", "Asked by", "Until"] blocks=true>
                    {rows}
                </Table>
            </section>
        }
    })
}

/// All of them wait, so that is not said of each: what it is about, who asks, and until when there is time.
#[component]
fn Row(request: RequestView) -> impl IntoView {
    let until = request.approval.map(|approval| view! { <When at=approval.expires_at/> });
    view! {
        <tr role="row">
            <th scope="row" role="rowheader">
                <a href=format!("/requests/{}", request.id)>{request.name.to_string()}</a>
                <br/>
                <span class="quiet">{request.action}</span>
            </th>
            <Cell label="Offering">{request.offering.to_string()}</Cell>
            <Cell label="Team">{request.team.to_string()}</Cell>
            <Cell label="Asked by">{request.requested_by}</Cell>
            <Cell label="Until">{until}</Cell>
        </tr>
    }
}
