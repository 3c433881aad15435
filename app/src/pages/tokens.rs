//! `/tokens`: one's own API tokens.

use super::load;
use crate::{
    components::{
        listing::{Cell, Table},
        moment::When,
        posted::{ShownOnce, Step},
        told::Said,
        values::CopyButton,
    },
    rpc::team::{TokensPage, tokens},
};
use domain::view::TokenView;
use leptos::prelude::*;
use leptos_meta::Title;

/// The person's tokens.
#[component]
pub fn Tokens() -> impl IntoView {
    let page = Resource::new_blocking(|| (), |()| tokens());
    load(page, |page| {
        let TokensPage { tokens, form_id, mut flash } = page;
        let fresh = flash.token.take().and_then(|made| made.token);
        let empty = tokens.is_empty();
        let rows = tokens.into_iter().map(|(token, key)| view! { <Row token key/> }).collect_view();
        view! {
            <Title text="Tokens"/>
            <h1>"API tokens"</h1>
            <p class="lead">
                "A token lets a script act as you: send it as " <code>"Authorization: Bearer …"</code> "."
            </p>
            <Said flash/>
            {fresh.map(|token| view! {
                <ShownOnce title="Your new token" then="Copy it now." secret=token.clone() id="token"/>
                <CopyButton text=token what="the token"/>
            })}
            <h2>"Make a token"</h2>
            <form class="stack narrow" method="post" action=crate::address::sent("/tokens")>
                <input type="hidden" name="request_id" value=form_id/>
                <div class="field">
                    <label for="token-label">"What it is for"</label>
                    <input type="text" id="token-label" name="label" required autocomplete="off"/>
                </div>
                <div class="field">
                    <label for="token-expires">"It ends after"</label>
                    <select id="token-expires" name="expires">
                        <option value="7d">"7 days"</option>
                        <option value="30d">"30 days"</option>
                        <option value="90d" selected>"90 days"</option>
                        <option value="365d">"365 days"</option>
                    </select>
                </div>
                <div class="actions"><button type="submit" class="primary">"Make token"</button></div>
            </form>
            <h2>"Your tokens"</h2>
            {if empty {
                view! { <p class="note">"You have no token. Make one above for your first script."</p> }.into_any()
            } else {
                view! {
                    <Table
                        name="Your tokens" columns=&["What it is for", "Made", "Ends", "Last used", "Revoke"]
                        blocks=true
                    >
                        {rows}
                    </Table>
                }
                .into_any()
            }}
        }
    })
}

#[component]
fn Row(token: TokenView, key: String) -> impl IntoView {
    let revoke = format!("/tokens/{}/revoke", token.id);
    let label = format!("Revoke {}", token.label);
    view! {
        <tr role="row">
            <th scope="row" role="rowheader">{token.label}</th>
            <Cell label="Made"><When at=token.created_at/></Cell>
            <Cell label="Ends"><When at=token.expires_at/></Cell>
            <Cell label="Last used">{match token.last_used_at {
                Some(at) => view! { <When at/> }.into_any(),
                None => view! { <span class="quiet">"never"</span> }.into_any(),
            }}</Cell>
            <Cell label="Revoke">{match token.revoked_at {
                Some(at) => view! { "revoked " <When at/> }.into_any(),
                None => view! {
                    <Step action=revoke key text="Revoke" name=label danger=true/>
                }
                .into_any(),
            }}</Cell>
        </tr>
    }
}
