//! The approval of a request: who decides and until when, the forms of those who may, and afterwards who did and why.

use super::LONGEST_REASON;
use crate::{
    components::{moment::When, posted::Part},
    rpc::requests::RequestPage,
};
use domain::{
    approval::{ApprovalView, Standing, Verdict},
    state::RequestState,
};
use leptos::prelude::*;

/// What there is to say and to do about the approval; nothing where the request takes none.
#[component]
pub fn Approval(
    /// The page.
    page: RwSignal<RequestPage>,
) -> impl IntoView {
    let shown = Memo::new(move |_| {
        let page = page.read();
        let request = &page.request;
        let waits = request.state == RequestState::PendingApproval;
        let keys = page.next.approve.clone().zip(page.next.reject.clone());
        let about = (request.id.to_string(), request.requested_by.clone());
        request.approval.clone().map(|approval| (approval, waits, page.next.standing, keys, about))
    });
    move || {
        shown.get().map(|(approval, waits, standing, keys, (id, asker))| match (waits, keys) {
            (true, Some(keys)) => view! { <Decide approval id asker keys/> }.into_any(),
            (true, None) => view! { <Waits approval standing/> }.into_any(),
            (false, _) => view! { <Decided approval/> }.into_any(),
        })
    }
}

/// The forms of who may decide.
#[component]
fn Decide(approval: ApprovalView, id: String, asker: String, keys: (String, String)) -> impl IntoView {
    let (approve, reject) = keys;
    let action = |step: &str| format!("/requests/{id}/{step}");
    view! {
        <section class="note caution" id="decide" aria-labelledby="decide-title">
            <h2 id="decide-title">"Your decision"</h2>
            <p>
                {asker} " asks for this, and nothing of it is carried out before somebody approves it. Decide until "
                <When at=approval.expires_at/> "; after that it counts as rejected."
            </p>
            <form class="stack" method="post" action=action("approve")>
                <input type="hidden" name="request_id" value=approve/>
                <Part
                    name="reason" of="approve" title="Why it is approved" hint="Optional. Everybody who sees the request reads it."
                    value=String::new() wrong=String::new() longest=LONGEST_REASON
                />
                <div class="actions"><button type="submit" class="primary">"Approve"</button></div>
            </form>
            <form class="stack" method="post" action=action("reject")>
                <input type="hidden" name="request_id" value=reject/>
                <Part
                    name="reason" of="reject" title="Why it is rejected" hint="Whoever asked reads it."
                    value=String::new() wrong=String::new() longest=LONGEST_REASON required=true
                />
                <div class="actions"><button type="submit" class="danger">"Reject"</button></div>
            </form>
        </section>
    }
}

/// What everybody else is told while it waits.
#[component]
fn Waits(approval: ApprovalView, standing: Option<Standing>) -> impl IntoView {
    let who = if standing == Some(Standing::Asked) {
        format!("You asked for this yourself, so {} other than you has to decide.", approval.by.title())
    } else {
        format!("It is carried out once {} has approved it.", approval.by.title())
    };
    view! {
        <section class="note" id="waits" aria-labelledby="waits-title">
            <h2 id="waits-title">"Waits for approval"</h2>
            <p>
                {who} " There is time until " <When at=approval.expires_at/>
                "; if nobody decides by then, it is rejected. It holds its name until it is decided."
            </p>
        </section>
    }
}

/// What was decided.
#[component]
fn Decided(approval: ApprovalView) -> impl IntoView {
    let what = match (approval.verdict, approval.decided_by) {
        (Some(Verdict::Approved), Some(by)) => format!("Approved by {by}"),
        (Some(Verdict::Rejected), Some(by)) => format!("Rejected by {by}"),
        (Some(Verdict::TimedOut), _) => "Nobody decided in time".to_owned(),
        _ => return ().into_any(),
    };
    // Why it was rejected stands above, as what the request came to.
    let why = approval.reason.filter(|_| approval.verdict == Some(Verdict::Approved));
    let end = why.map_or_else(|| ".".to_owned(), |reason| format!(": {reason}"));
    view! { <p id="decided">{what} {approval.decided_at.map(|at| view! { ", " <When at/> })} {end}</p> }
        .into_any()
}
