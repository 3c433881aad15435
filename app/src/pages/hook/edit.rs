//! `/teams/{team}/hooks/new` and `/teams/{team}/hooks/{id}/edit`: the form of a hook.

use crate::{
    components::{
        posted::{Part, Typed, spot, wrong},
        told::plainly,
    },
    context::FormState,
    forms::{fields::rule_or_choices, hook::PARAMETER},
    pages::load,
    rpc::hooks::{EditPage, open_hook_form},
};
use domain::{
    form::{self, Field},
    hidden,
    hook::Signing,
    view::OfferingView,
};
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
                None => view! { <Choose offerings action notice=form.notice/> }.into_any(),
            }}
        }
    })
}

/// The first step: what events are to ask for.
#[component]
fn Choose(offerings: Vec<(String, String)>, action: String, notice: Option<String>) -> impl IntoView {
    let options = offerings.into_iter().map(|(id, title)| view! { <option value=id>{title}</option> });
    view! {
        {notice.map(|notice| view! { <p class="note" role="status">{notice}</p> })}
        <form class="stack narrow" method="get" action=action>
            <div class="field">
                <label for="hook-offering">"What events ask for"</label>
                <select id="hook-offering" name="offering" required>{options.collect_view()}</select>
            </div>
            <div class="actions"><button type="submit" class="primary">"Go on"</button></div>
        </form>
    }
}

#[component]
fn Form(offering: OfferingView, mut form: FormState, action: String, new: bool) -> impl IntoView {
    let (values, problem) = (std::mem::take(&mut form.values), form.problem.clone());
    let all_parameters = problem.iter().flat_map(|problem| &problem.errors);
    let all_parameters: Vec<String> = all_parameters
        .filter(|error| error.pointer == "/parameters")
        .map(|error| plainly(&error.detail).to_owned())
        .collect();
    let value = move |name: &str| values.get(name).cloned().unwrap_or_default();
    let wrong = move |pointer: &str| wrong(problem.as_ref(), pointer);
    // What is a secret no event can give.
    let secret = |field: &Field| hidden::is_write_only(&offering.parameters["properties"][&field.name]);
    let (secrets, fields): (Vec<_>, Vec<_>) =
        form::fields(&offering.parameters).into_iter().partition(secret);
    let secrets: Vec<String> = secrets.into_iter().map(|field| field.title).collect();
    let ungiven = (!secrets.is_empty()).then(|| {
        let names = secrets.join(", ");
        view! { <p class="hint">{format!("Secrets, which no event can give, are left out: {names}.")}</p> }
    });
    let own = [
        ("title", "What it is for"),
        ("signature", "Signed by"),
        ("identity", "Header with the event's identity"),
        ("when", "Only events for which this holds"),
        ("name", "Name of the resource"),
        ("labels", "Labels"),
        ("correlation_id", "Correlation ID"),
        ("sample", "Sample payload"),
        ("sample_headers", "Sample headers"),
    ];
    let own = own.map(|(name, title)| spot("hook", name, format!("/{name}"), title.to_owned()));
    let mapped = fields.iter().map(|field| {
        let name = format!("{PARAMETER}{}", field.name);
        spot("hook", &name, format!("/parameters/{}", field.name), field.title.clone())
    });
    let all = spot("hook", "parameters", "/parameters".to_owned(), "Parameters".to_owned());
    let spots: Vec<_> = own.into_iter().chain(mapped).chain([all]).collect();
    let parameters = fields.into_iter().map(|field| {
        let name = format!("{PARAMETER}{}", field.name);
        let (value, wrong) = (value(&name), wrong(&format!("/parameters/{}", field.name)));
        let needed = if field.required && field.default.is_none() { "Needed. " } else { "" };
        let rule = rule_or_choices(&field.kind).unwrap_or_default();
        let hint = format!("{needed}{} {rule}", field.help.unwrap_or_default());
        let hint = hint.trim().to_owned();
        view! { <Part of="hook" name title=field.title hint value wrong/> }
    });
    let parameters = parameters.collect_view();
    let signature = value("signature");
    let ways = Signing::ALL.into_iter().map(|way| {
        view! { <option value=way.as_str() selected=way.as_str() == signature>{way.title()}</option> }
    });
    let ways = ways.collect_view();
    let (version, offering_id) = (value("version"), offering.id.to_string());
    view! {
        <p>
            "Events ask for " <strong>{offering.title}</strong> ". A mapping is text with " <code>"{{ expressions }}"</code>
            " in it, which read " <code>"payload"</code> ", " <code>"headers"</code> " (names in lower case) and "
            <code>"id"</code> "; a text that is one expression keeps its value's type. Filters: lower, upper, trim, replace, \
             split, join, default, first, last, length, int, float, bool, string, abs, round, times."
        </p>
        <Typed state=form page=action spots>
            <input type="hidden" name="offering" value=offering_id/>
            <input type="hidden" name="version" value=version/>
            <Part
                name="title" of="hook" title="What it is for" value=value("title") wrong=wrong("/title")
                required=true
            />
            <div class="field">
                <label for="hook-signature">"Signed by"</label>
                <select id="hook-signature" name="signature" aria-describedby="hook-signature-error">{ways}</select>
                <p class="field-error" id="hook-signature-error">{wrong("/signature")}</p>
            </div>
            <Part
                name="identity" of="hook" title="Header with the event's identity"
                hint="Left empty: webhook-id, X-GitHub-Delivery or Idempotency-Key, by the way of signing."
                value=value("identity") wrong=wrong("/identity")
            />
            <Part
                name="when" of="hook" title="Only events for which this holds"
                hint="An expression, as payload.action == 'opened'. Empty: all count."
                value=value("when") wrong=wrong("/when")
            />
            <Part
                name="name" of="hook" title="Name of the resource"
                hint="As app-{{ payload.repository.name | lower }}"
                value=value("name") wrong=wrong("/name") required=true
            />
            <fieldset id="hook-parameters" tabindex="-1" aria-describedby="hook-parameters-hint hook-parameters-error">
                <legend>"Parameters"</legend>
                <p class="hint" id="hook-parameters-hint">
                    "A mapping or a fixed value; left empty, the offering's default holds."
                </p>
                <p class="field-error" id="hook-parameters-error">{all_parameters.join(" ")}</p>
                {parameters}
                {ungiven}
            </fieldset>
            <Part
                name="labels" of="hook" title="Labels" rows=2
                hint="One key: mapping on each line. The identity becomes the label idempotency.key by itself."
                value=value("labels") wrong=wrong("/labels")
            />
            <Part
                name="correlation_id" of="hook" title="Correlation ID"
                hint="A mapping, as order-{{ payload.order }}. Empty: each request has its own."
                value=value("correlation_id") wrong=wrong("/correlation_id")
            />
            <Part
                name="sample" of="hook" title="Sample payload" rows=8
                hint="JSON. The mapping is tried against it now, and a test event begins with it."
                value=value("sample") wrong=wrong("/sample")
            />
            <Part
                name="sample_headers" of="hook" title="Sample headers" rows=2
                hint="One name: value on each line, as x-github-event: push"
                value=value("sample_headers") wrong=wrong("/sample_headers")
            />
            <div class="actions">
                <button type="submit" class="primary">{if new { "Make the hook" } else { "Save" }}</button>
            </div>
        </Typed>
    }
}
