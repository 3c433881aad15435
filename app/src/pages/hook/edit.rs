//! `/teams/{team}/hooks/new` and `/teams/{team}/hooks/{id}/edit`: the form of a hook.

use crate::{
    components::told::Why,
    context::HookForm,
    forms::{fields::as_content, hook::PARAMETER},
    pages::load,
    rpc::hooks::{EditPage, open_hook_form},
};
use domain::{form, hook::Signing, problem::Problem, view::OfferingView};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::{use_params_map, use_query_map};

/// The form of a new hook, or of the one in the address.
#[component]
pub fn EditHook() -> impl IntoView {
    let (params, query) = (use_params_map(), use_query_map());
    let asked = move || {
        let params = params.read();
        (params.get("team").unwrap_or_default(), params.get("id"), query.read().get("offering"))
    };
    let page = Resource::new_blocking(asked, |(team, id, offering)| open_hook_form(team, id, offering));
    load(page, move |page| {
        let (team, id, _) = untrack(asked);
        let EditPage { offerings, offering, form } = page;
        let hooks = format!("/teams/{team}/hooks");
        let title = if id.is_some() { "Edit the hook" } else { "Make a hook" };
        let action = id.as_ref().map_or_else(|| format!("{hooks}/new"), |id| format!("{hooks}/{id}/edit"));
        view! {
            <Title text=title/>
            <nav class="crumbs" aria-label="Where this is"><a href=hooks>"Hooks of team " {team}</a></nav>
            <h1>{title}</h1>
            {match offering {
                Some(offering) => view! { <Form offering form action new=id.is_none()/> }.into_any(),
                None => view! { <Choose offerings action/> }.into_any(),
            }}
        }
    })
}

/// The first step: what events are to ask for.
#[component]
fn Choose(offerings: Vec<(String, String)>, action: String) -> impl IntoView {
    let options = offerings.into_iter().map(|(id, title)| view! { <option value=id>{title}</option> });
    view! {
        <form class="stack narrow" method="get" action=action>
            <div class="field">
                <label for="hook-offering">"What events ask for"</label>
                <select id="hook-offering" name="offering" required>{options.collect_view()}</select>
            </div>
            <div class="actions"><button type="submit" class="primary">"Go on"</button></div>
        </form>
    }
}

/// What is wrong with one part of the hook.
fn wrong(problem: Option<&Problem>, pointer: &str) -> String {
    let errors = problem.into_iter().flat_map(|problem| &problem.errors);
    let here = errors.filter(|error| {
        error.pointer.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    here.map(|error| error.detail.clone()).collect::<Vec<_>>().join(" ")
}

/// One line or several of a hook's form.
#[component]
fn Part(
    /// The field.
    name: String,
    /// What it is called.
    title: String,
    /// What goes into it.
    #[prop(default = String::new())]
    hint: String,
    /// What is typed.
    value: String,
    /// What is wrong with it.
    wrong: String,
    /// How many lines it has.
    #[prop(default = 1)]
    rows: u32,
    /// Whether it must be given.
    #[prop(default = false)]
    required: bool,
) -> impl IntoView {
    let id = format!("hook-{}", name.replace('.', "-"));
    let (hint_id, error_id) = (format!("{id}-hint"), format!("{id}-error"));
    let described = format!("{hint_id} {error_id}");
    let invalid = (!wrong.is_empty()).then_some("true");
    view! {
        <div class="field">
            <label for=id.clone()>{title}</label>
            <p class="hint" id=hint_id>{hint}</p>
            {if rows > 1 {
                view! {
                    <textarea
                        id=id name=name rows=rows.to_string() spellcheck="false" autocomplete="off"
                        aria-describedby=described aria-invalid=invalid inner_html=as_content(&value)
                    ></textarea>
                }
                .into_any()
            } else {
                view! {
                    <input
                        type="text" id=id name=name value=value required=required spellcheck="false" autocomplete="off"
                        autocapitalize="none" aria-describedby=described aria-invalid=invalid
                    />
                }
                .into_any()
            }}
            <p class="field-error" id=error_id>{wrong}</p>
        </div>
    }
}

#[component]
fn Form(offering: OfferingView, form: HookForm, action: String, new: bool) -> impl IntoView {
    let HookForm { values, problem, request_id, .. } = form;
    let value = |name: &str| values.get(name).cloned().unwrap_or_default();
    let wrong = |pointer: &str| wrong(problem.as_ref(), pointer);
    let parameters = form::fields(&offering.parameters).into_iter().map(|field| {
        let name = format!("{PARAMETER}{}", field.name);
        let (value, wrong) = (value(&name), wrong(&format!("/parameters/{}", field.name)));
        let needed = if field.required && field.default.is_none() { "Needed. " } else { "" };
        let hint = format!("{needed}{}", field.help.unwrap_or_default());
        view! { <Part name title=field.title hint value wrong/> }
    });
    let parameters = parameters.collect_view();
    let all_parameters = problem.iter().flat_map(|problem| &problem.errors);
    let all_parameters: Vec<String> = all_parameters
        .filter(|error| error.pointer == "/parameters")
        .map(|error| error.detail.clone())
        .collect();
    let signature = value("signature");
    let ways = Signing::ALL.into_iter().map(|way| {
        view! { <option value=way.as_str() selected=way.as_str() == signature>{way.title()}</option> }
    });
    let ways = ways.collect_view();
    let (version, offering_id) = (value("version"), offering.id.to_string());
    view! {
        {problem.clone().map(|problem| view! { <Why problem/> })}
        <p>
            "Events ask for " <strong>{offering.title}</strong> ". A mapping is text with " <code>"{{ expressions }}"</code>
            " in it, which read " <code>"payload"</code> ", " <code>"headers"</code> " (names in lower case) and "
            <code>"id"</code> "; a text that is one expression keeps its value's type. Filters: lower, upper, trim, replace, \
             split, join, default, first, last, length, int, float, bool, string, abs, round, times."
        </p>
        <form class="stack" method="post" action=action>
            <input type="hidden" name="request_id" value=request_id/>
            <input type="hidden" name="offering" value=offering_id/>
            <input type="hidden" name="version" value=version/>
            <Part
                name="title".to_owned() title="What it is for".to_owned() value=value("title") wrong=wrong("/title")
                required=true
            />
            <div class="field">
                <label for="hook-signature">"Signed by"</label>
                <select id="hook-signature" name="signature">{ways}</select>
                <p class="field-error">{wrong("/signature")}</p>
            </div>
            <Part
                name="identity".to_owned() title="Header with the event's identity".to_owned()
                hint="Left empty: webhook-id, X-GitHub-Delivery or Idempotency-Key, by the way of signing.".to_owned()
                value=value("identity") wrong=wrong("/identity")
            />
            <Part
                name="when".to_owned() title="Only events for which this holds".to_owned()
                hint="An expression, as payload.action == 'opened'. Empty: all count.".to_owned()
                value=value("when") wrong=wrong("/when")
            />
            <Part
                name="name".to_owned() title="Name of the resource".to_owned()
                hint="As app-{{ payload.repository.name | lower }}".to_owned()
                value=value("name") wrong=wrong("/name") required=true
            />
            <fieldset>
                <legend>"Parameters"</legend>
                <p class="hint">"A mapping or a fixed value; left empty, the offering's default holds."</p>
                <p class="field-error">{all_parameters.join(" ")}</p>
                {parameters}
            </fieldset>
            <Part
                name="labels".to_owned() title="Labels".to_owned() rows=2
                hint="One key: mapping on each line. The identity becomes the label idempotency.key by itself.".to_owned()
                value=value("labels") wrong=wrong("/labels")
            />
            <Part
                name="correlation_id".to_owned() title="Correlation ID".to_owned()
                hint="A mapping, as order-{{ payload.order }}. Empty: each request has its own.".to_owned()
                value=value("correlation_id") wrong=wrong("/correlation_id")
            />
            <Part
                name="sample".to_owned() title="Sample payload".to_owned() rows=8
                hint="JSON. The mapping is tried against it now, and a test event begins with it.".to_owned()
                value=value("sample") wrong=wrong("/sample")
            />
            <Part
                name="sample_headers".to_owned() title="Sample headers".to_owned() rows=2
                hint="One name: value on each line, as x-github-event: push".to_owned()
                value=value("sample_headers") wrong=wrong("/sample_headers")
            />
            <div class="actions">
                <button type="submit" class="primary">{if new { "Make the hook" } else { "Save" }}</button>
            </div>
        </form>
    }
}
