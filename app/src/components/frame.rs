//! What stands around every page: the way to the content, the navigation, who is logged in.

use crate::rpc::{Answer, shell::Looking};
use domain::{notification::WHOLE_PORTAL, role::PortalRole, view::MeView};
use leptos::prelude::*;
use leptos_router::hooks::use_location;

/// Who is looking, for every page. In the context of the whole app.
#[derive(Clone, Copy)]
pub struct Visitor(pub Resource<Answer<Looking>>);

/// The head of every page.
#[component]
pub fn Header() -> impl IntoView {
    let visitor = expect_context::<Visitor>().0;
    view! {
        <header class="top">
            <div class="wide">
                <a class="brand" href="/">"Keyturn"</a>
                <Suspense>
                    {move || Suspend::new(async move {
                        visitor.await.ok().and_then(|looking| looking.me).map(|me| view! { <Menu me/> })
                    })}
                </Suspense>
            </div>
        </header>
    }
}

#[component]
fn Menu(me: MeView) -> impl IntoView {
    let admin = me.role == PortalRole::Admin;
    let teams = me.teams.iter().map(|membership| {
        let team = membership.team.to_string();
        view! { <li><NavLink href=format!("/teams/{team}/resources") text=format!("Team {team}")/></li> }
    });
    let teams = teams.collect_view();
    view! {
        <nav aria-label="Main">
            <ul>
                <li><NavLink href="/".to_owned() text="Catalog".to_owned()/></li>
                <li><NavLink href="/requests".to_owned() text="My requests".to_owned()/></li>
                {teams}
                {admin.then(|| view! {
                    <li><NavLink href="/history".to_owned() text="History".to_owned()/></li>
                    <li><NavLink href="/duplicates".to_owned() text="Duplicates".to_owned()/></li>
                    <li><NavLink href="/orphans".to_owned() text="Orphans".to_owned()/></li>
                    <li><NavLink href=format!("/teams/{WHOLE_PORTAL}/notifications") text="Notifications".to_owned()/></li>
                })}
                <li><NavLink href="/tokens".to_owned() text="Tokens".to_owned()/></li>
                <li><NavLink href="/help".to_owned() text="Help".to_owned()/></li>
            </ul>
        </nav>
        <form class="who" method="post" action="/logout">
            <span>{me.name}</span>
            <button type="submit" class="plain">"Log out"</button>
        </form>
    }
}

#[component]
fn NavLink(href: String, text: String) -> impl IntoView {
    let path = use_location().pathname;
    let current = {
        let href = href.clone();
        move || {
            let here = path.read();
            let inside = |section: &str| here.strip_prefix(section).is_some_and(|rest| rest.starts_with('/'));
            if *here == href {
                Some("page")
            } else {
                let part = match href.as_str() {
                    "/" => inside("/offerings"),
                    // The page of a request may be about anybody's.
                    "/requests" => false,
                    // Whatever belongs to the team.
                    team => inside(team.strip_suffix("/resources").unwrap_or(team)),
                };
                part.then_some("true")
            }
        }
    };
    view! { <a href=href.clone() aria-current=current>{text}</a> }
}

/// The foot of every page.
#[component]
pub fn Footer() -> impl IntoView {
    view! {
        <footer class="bottom">
            <div class="wide">
                <p>
                    "One submission, one resource: repeats get the first result. " <a href="/help">"What is promised"</a>
                    " · " <a href="/openapi.json" rel="external">"API"</a>
                </p>
            </div>
        </footer>
    }
}
