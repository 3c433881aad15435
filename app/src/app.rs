//! The app: the document around the pages, and which page stands at which address.

use crate::{
    components::{
        frame::{Footer, Header, Visitor},
        moment::Scripted,
    },
    pages,
    rpc::shell::who_looks,
};
use leptos::prelude::*;
use leptos_meta::{Stylesheet, Title, provide_meta_context};
use leptos_router::{
    SsrMode,
    components::{Route, Router, Routes},
    hooks::use_location,
    path,
};

/// Runs before anything can be clicked: the form in the page takes the ID of its history entry, or that of the form
/// that waited behind a login, and the entry takes the form's.
#[cfg(feature = "ssr")]
const ADOPT_FORM_ID: &str = include_str!("forms/adopt.js");

/// The document around the app.
#[cfg(feature = "ssr")]
pub fn shell(options: LeptosOptions) -> impl IntoView {
    use leptos::nonce::use_nonce;
    use leptos_meta::MetaTags;

    view! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <link rel="icon" href="data:,"/>
                <AutoReload options=options.clone()/>
                <HydrationScripts options/>
                <MetaTags/>
            </head>
            <body>
                <App/>
                <script nonce=use_nonce() inner_html=ADOPT_FORM_ID></script>
            </body>
        </html>
    }
}

/// The app.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    let scripted = RwSignal::new(false);
    provide_context(Scripted(scripted));
    Effect::new(move |_| scripted.set(true));
    provide_context(Visitor(Resource::new_blocking(|| (), |()| who_looks())));
    view! {
        <Stylesheet id="keyturn-style" href="/pkg/keyturn.css"/>
        <Title formatter=|title: String| if title.is_empty() { "Keyturn".to_owned() } else { format!("{title} – Keyturn") }/>
        <Router>
            <Frame/>
        </Router>
    }
}

#[component]
fn Frame() -> impl IntoView {
    let main = NodeRef::<leptos::html::Main>::new();
    let path = use_location().pathname;
    // After a change of page inside the browser, reading goes on at the page's beginning.
    Effect::new(move |before: Option<String>| {
        let now = path.get();
        if before.is_some_and(|before| before != now)
            && let Some(main) = main.get_untracked()
        {
            let _ = main.focus();
        }
        now
    });
    view! {
        <a class="skip" href="#content" rel="external">"Skip to content"</a>
        <Header/>
        <main id="content" tabindex="-1" class="wide" node_ref=main>
            <Routes fallback=pages::not_found::NotFound>
                <Route path=path!("/") view=pages::catalog::Catalog ssr=SsrMode::Async/>
                <Route path=path!("/login") view=pages::login::Login ssr=SsrMode::Async/>
                <Route path=path!("/setup") view=pages::setup::SetUp ssr=SsrMode::Async/>
                <Route path=path!("/offerings/:id/new") view=pages::new_request::NewRequest ssr=SsrMode::Async/>
                <Route path=path!("/requests") view=pages::requests::MyRequests ssr=SsrMode::Async/>
                <Route path=path!("/requests/:id") view=pages::request::Request ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/requests") view=pages::team_requests::TeamRequests ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/resources") view=pages::resources::Resources ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/resources/:type/:name") view=pages::resource::ResourceIs ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/resources/:type/:name/change") view=pages::change::Change ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/resources/:type/:name/delete") view=pages::change::Delete ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/resources/:type/:name/actions/:action") view=pages::change::Act ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/hooks") view=pages::hooks::Hooks ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/hooks/new") view=pages::hook::edit::EditHook ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/hooks/:id") view=pages::hook::HookIs ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/hooks/:id/edit") view=pages::hook::edit::EditHook ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/hooks/:id/test") view=pages::hook::test::TestHook ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/hooks/:id/deliveries/:delivery") view=pages::hook::delivery::DeliveryIs ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/notifications") view=pages::notifications::Notifications ssr=SsrMode::Async/>
                <Route path=path!("/teams/:team/notifications/:id") view=pages::notifications::one::Notification ssr=SsrMode::Async/>
                <Route path=path!("/history") view=pages::history::History ssr=SsrMode::Async/>
                <Route path=path!("/duplicates") view=pages::duplicates::Duplicates ssr=SsrMode::Async/>
                <Route path=path!("/duplicates/rehearsal") view=pages::duplicates::rehearsal::Rehearsal ssr=SsrMode::Async/>
                <Route path=path!("/orphans") view=pages::orphans::Orphans ssr=SsrMode::Async/>
                <Route path=path!("/problems/:slug") view=pages::problem::ProblemPage ssr=SsrMode::Async/>
                <Route path=path!("/tokens") view=pages::tokens::Tokens ssr=SsrMode::Async/>
                <Route path=path!("/help") view=pages::help::Help ssr=SsrMode::Async/>
            </Routes>
        </main>
        <Footer/>
    }
}
