//! What the catalog and the request form show.

use super::{
    Answer,
    team::{End, Part},
};
use crate::{context::FormState, forms::subject::Subject};
use domain::{
    name::Name,
    quota::QuotaUse,
    time::Moment,
    view::{OfferingView, RequestSummary},
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// The catalog's entries.
#[server(prefix = "/rpc", endpoint = "catalog")]
pub async fn catalog() -> Answer<Vec<OfferingView>> {
    let (asking, caller) = super::asked::caller()?;
    Ok(asking.portal.offerings(&caller))
}

/// One opened form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// What it is about.
    pub subject: Subject,
    /// The teams for which the person may request something; for a form about a resource only its own, if at all.
    pub teams: Vec<Name>,
    /// How much of their quotas those of them use that have a limit, where something new is asked for.
    pub limits: Vec<(Name, QuotaUse)>,
    /// Who fills it in: kept values are shown to nobody else.
    pub user: String,
    /// A second ID, for sending the form as something new without script.
    pub fresh_id: String,
    /// The form as it was sent, or as it begins; its `request_id` is always set.
    pub state: FormState,
}

#[cfg(feature = "ssr")]
async fn opened(
    asking: &crate::context::Asking,
    caller: portal::Caller,
    subject: Subject,
) -> Answer<Opening> {
    use super::asked;
    use domain::role::TeamAct;

    let teams = match &subject.on {
        Some(on) => vec![on.team.clone()],
        None => asking.portal.me(&caller).teams.into_iter().map(|membership| membership.team).collect(),
    };
    let teams: Vec<Name> = teams.into_iter().filter(|team| caller.may(TeamAct::Request, team)).collect();
    let limits = match &subject.on {
        Some(_) => Vec::new(),
        None => asking.portal.limits_of(&caller, &teams).await.map_err(asked::refusal)?,
    };
    let state = asked::form(asking, &caller)?;
    Ok(Opening {
        subject,
        teams,
        limits,
        user: caller.name,
        fresh_id: asking.portal.new_submission_key(),
        state,
    })
}

/// Opens the form of an offering.
#[server(prefix = "/rpc", endpoint = "open-form")]
pub async fn open_form(
    /// The offering's ID.
    offering: String,
) -> Answer<Opening> {
    use super::asked;

    let (asking, caller) = asked::caller()?;
    let offering = asking.portal.offering(&caller, &offering).map_err(asked::refusal)?;
    opened(&asking, caller, Subject::create(offering)).await
}

/// What the address of a form about a resource leads to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Opened {
    /// The form.
    Form(Box<About>),
    /// Nothing is there any more: this request deleted it.
    Deleted(RequestSummary),
}

/// A form about a resource, and what one should know of that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The form.
    pub opening: Opening,
    /// What the resource is made of.
    pub parts: Vec<Part>,
    /// When it ends, and how near that is.
    pub end: Option<(Moment, End)>,
}

/// What is to be done with a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// Change its parameters.
    Change,
    /// Delete it.
    Delete,
    /// Do this action of its offering's.
    Act(String),
}

/// Opens a form about a resource that is there.
#[server(prefix = "/rpc", endpoint = "open-change")]
pub async fn open_change(
    /// The team.
    team: String,
    /// The resource's type.
    kind: String,
    /// The resource's name.
    name: String,
    /// What is to be done with it.
    wish: Wish,
) -> Answer<Opened> {
    use super::asked;
    use super::team::{end_of, parts_of};
    use crate::forms::subject::Deed;
    use domain::problem::ProblemKind;
    use portal::Error;

    let (asking, caller) = asked::caller()?;
    let found = match asking.portal.resource(&caller, &team, &kind, &name).await {
        Ok(found) => found.resource,
        Err(error) => {
            // Who comes back to a form after a reload learns what became of it.
            let deleted = asking.portal.deleted_by(&caller, &team, &kind, &name).await;
            let deleted = deleted.ok().flatten().ok_or(error).map_err(asked::refusal)?;
            return Ok(Opened::Deleted(deleted));
        }
    };
    let offering = asking.portal.offering(&caller, found.offering.as_str()).map_err(asked::refusal)?;
    let deed = match wish {
        Wish::Change if offering.updatable => Deed::Update,
        Wish::Change => {
            let why = "What made this resource cannot change it. Make another one, and delete this one.";
            return Err(asked::refusal(Error::new(ProblemKind::NotOffered, why)));
        }
        Wish::Delete => Deed::Delete,
        Wish::Act(id) => {
            let known = offering.actions.iter().find(|action| action.id.as_str() == id).cloned();
            let none = || Error::new(ProblemKind::NotFound, "What made this resource has no such action.");
            Deed::Act(known.ok_or_else(none).map_err(asked::refusal)?)
        }
    };
    let parts = match deed {
        Deed::Delete => parts_of(&asking, &caller, &found, Some(&offering)).await?,
        _ => Vec::new(),
    };
    let end = found.expires_at.zip(end_of(&asking, &found, Some(&offering)));
    let opening = opened(&asking, caller, Subject::on(offering, (&found).into(), deed)).await?;
    Ok(Opened::Form(Box::new(About { opening, parts, end })))
}
