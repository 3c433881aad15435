//! The parts of a form around the inputs of its schema: for whom and under which name something is requested, what
//! cannot be changed, and the name that is typed before something is deleted.

use super::{
    fields::{Labelled, Misfits, as_content, described_by, input_id, invalid},
    outgoing::Values,
    subject::{CONFIRM, Subject},
};
use crate::components::values::Shown;
use domain::{form::is_immutable, name::MAX_NAME_LENGTH};
use leptos::prelude::*;

/// For whom, and under which name.
#[component]
pub fn Whose(
    /// The teams to choose from.
    teams: Vec<domain::name::Name>,
    /// How much of their quotas those use that have a limit.
    limits: Vec<(domain::name::Name, domain::quota::QuotaUse)>,
    /// The one that is chosen.
    chosen: Option<String>,
    /// The name as it is typed.
    name: String,
    /// What is wrong, by field.
    misfits: Signal<Misfits>,
) -> impl IntoView {
    let limits = limits.into_iter().map(|(team, uses)| {
        view! { <p class="quiet" data-quota=team.to_string()>"Team " {team.to_string()} " " {uses.to_string()} " of its quota."</p> }
    });
    let limits = limits.collect_view();
    view! {
        <Team teams=teams chosen=chosen/>
        {limits}
        <Labelled
            field="name".to_owned() title="Name".to_owned() required=true misfits=misfits
            help=Some("Lower-case letters, digits and hyphens, at most 63. It names the resource in the team.".to_owned())
        >
            <input
                type="text" id=input_id("name") name="name" value=name required
                spellcheck="false" autocapitalize="none" pattern=name_pattern()
                title="Lower-case letters, digits and hyphens; begins and ends with a letter or a digit"
                aria-invalid=invalid(misfits, "name") aria-describedby=described_by("name", true)
            />
        </Labelled>
    }
}

/// What stays as it was when the resource was made.
#[component]
pub fn Fixed(
    /// What the form is about.
    subject: Subject,
) -> impl IntoView {
    let properties =
        subject.schema().get("properties").and_then(|properties| properties.as_object()).cloned();
    let standing = subject.on.map(|on| on.parameters).unwrap_or_default();
    let rows = properties.into_iter().flatten().filter(|(_, property)| is_immutable(property));
    let rows = rows.filter_map(|(name, property)| {
        let value = standing.get(&name)?.clone();
        let title = property.get("title").and_then(|title| title.as_str()).map_or(name, str::to_owned);
        Some(view! {
            <div>
                <dt>{title}</dt>
                <dd><Shown value/> " " <span class="quiet">"cannot be changed"</span></dd>
            </div>
        })
    });
    view! { <dl class="facts">{rows.collect_view()}</dl> }
}

/// The name, typed by hand, so that nothing is deleted by a slip.
#[component]
pub fn Confirm(
    /// The name that is to be typed.
    name: String,
    /// What is typed.
    typed: String,
    /// What is wrong, by field.
    misfits: Signal<Misfits>,
) -> impl IntoView {
    view! {
        <Labelled
            field=CONFIRM.to_owned() title="The resource's name".to_owned() required=true misfits=misfits
            help=Some(format!("Type {name} to confirm that this one is to be deleted."))
        >
            <input
                type="text" id=input_id(CONFIRM) name=CONFIRM value=typed required autocomplete="off"
                spellcheck="false" autocapitalize="none"
                aria-invalid=invalid(misfits, CONFIRM) aria-describedby=described_by(CONFIRM, true)
            />
        </Labelled>
    }
}

/// What a request may carry beside its parameters.
#[component]
pub fn Extras(
    /// What is typed.
    values: Values,
    /// What is wrong, by field.
    misfits: Signal<Misfits>,
) -> impl IntoView {
    let value = |field: &str| values.get(field).cloned().unwrap_or_default();
    let (labels, correlation) = (value("labels"), value("correlation_id"));
    let open_extras = !labels.is_empty() || !correlation.is_empty();
    view! {
        <details class="extras" open=open_extras>
            <summary>"Labels and correlation ID"</summary>
            <Labelled
                field="labels".to_owned() title="Labels".to_owned() misfits=misfits
                help=Some("One key:value on each line, to find the request by.".to_owned())
            >
                <textarea
                    id=input_id("labels") name="labels" rows="2" spellcheck="false"
                    aria-invalid=invalid(misfits, "labels") aria-describedby=described_by("labels", true)
                    inner_html=as_content(&labels)
                ></textarea>
            </Labelled>
            <Labelled
                field="correlation_id".to_owned() title="Correlation ID".to_owned() misfits=misfits
                help=Some("An identifier of your own that groups this request with others, as an order number.".to_owned())
            >
                <input
                    type="text" id=input_id("correlation_id") name="correlation_id" value=correlation
                    spellcheck="false" aria-invalid=invalid(misfits, "correlation_id")
                    aria-describedby=described_by("correlation_id", true)
                />
            </Labelled>
        </details>
    }
}

/// The team to request for: a choice only where there is one.
#[component]
fn Team(teams: Vec<domain::name::Name>, chosen: Option<String>) -> impl IntoView {
    let chosen = chosen.unwrap_or_default();
    match teams.as_slice() {
        [only] => view! {
            <input type="hidden" name="team" value=only.to_string()/>
            <p class="field">"For team " <strong>{only.to_string()}</strong></p>
        }
        .into_any(),
        many => {
            let options = many.iter().map(|team| {
                let team = team.to_string();
                view! { <option value=team.clone() selected=team == chosen>{team.clone()}</option> }
            });
            let options = options.collect_view();
            view! {
                <div class="field">
                    <label for=input_id("team")>"Team"</label>
                    <select id=input_id("team") name="team" required>{options}</select>
                </div>
            }
            .into_any()
        }
    }
}

fn name_pattern() -> String {
    format!(r"[a-z0-9]([\-a-z0-9]{{0,{}}}[a-z0-9])?", MAX_NAME_LENGTH - 2)
}
