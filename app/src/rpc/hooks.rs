//! What the pages about a team's hooks show.

use super::Answer;
use crate::context::{Flash, FormState};
use domain::{
    hook::{DeliveryView, HookTrial, HookView},
    view::{OfferingView, Page},
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// A team's hooks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HooksPage {
    /// The hooks.
    pub page: Page<HookView>,
    /// Whether the person looks after them.
    pub manage: bool,
    /// What the last form post has to say.
    pub flash: Flash,
}

/// The hooks of a team, newest first.
#[server(prefix = "/rpc", endpoint = "hooks")]
pub async fn hooks(
    /// The team.
    team: String,
    /// Where the page begins.
    cursor: Option<String>,
) -> Answer<HooksPage> {
    use super::asked;

    let (asking, caller) = asked::caller()?;
    let page = asking.portal.hooks(&caller, &team, 25, cursor).await.map_err(asked::refusal)?;
    Ok(HooksPage { page, manage: manages(&caller, &team), flash: use_context::<Flash>().unwrap_or_default() })
}

#[cfg(feature = "ssr")]
fn manages(caller: &portal::Caller, team: &str) -> bool {
    use domain::{name::Name, role::TeamAct};
    Name::parse(team).is_ok_and(|team| caller.may(TeamAct::ManageHooks, &team))
}

/// One hook with what its page shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookPage {
    /// The hook.
    pub hook: HookView,
    /// What was delivered lately, for who looks after it.
    pub deliveries: Option<Page<DeliveryView>>,
    /// The keys of the forms that rotate, end the old secret, and remove.
    pub keys: [String; 3],
    /// What the last form post has to say.
    pub flash: Flash,
}

/// One hook.
#[server(prefix = "/rpc", endpoint = "hook")]
pub async fn hook(
    /// The team.
    team: String,
    /// The hook's ID.
    id: String,
    /// Where the list of deliveries begins.
    cursor: Option<String>,
) -> Answer<HookPage> {
    use super::asked;

    let (asking, caller) = asked::caller()?;
    let hook = asking.portal.hook(&caller, &team, &id).await.map_err(asked::refusal)?;
    let deliveries = if manages(&caller, &team) {
        let page = asking.portal.deliveries(&caller, &team, &id, 25, cursor).await;
        Some(page.map_err(asked::refusal)?)
    } else {
        None
    };
    let key = || asking.portal.new_submission_key();
    Ok(HookPage {
        hook,
        deliveries,
        keys: [key(), key(), key()],
        flash: use_context::<Flash>().unwrap_or_default(),
    })
}

/// The form that makes or edits a hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EditPage {
    /// What can be asked for, by ID and title; for the first step of a new hook.
    pub offerings: Vec<(String, String)>,
    /// The offering that the hook asks for, once it is chosen.
    pub offering: Option<OfferingView>,
    /// The form as it was sent, or as it begins.
    pub form: FormState,
}

/// The form of a new hook, or of one that is there.
#[server(prefix = "/rpc", endpoint = "hook-form")]
pub async fn open_hook_form(
    /// The team.
    team: String,
    /// The hook's ID, where there is one.
    id: Option<String>,
    /// The offering that was chosen for a new one.
    offering: Option<String>,
) -> Answer<EditPage> {
    use super::asked;
    use crate::forms::hook::values;
    use domain::problem::ProblemKind;

    let (asking, caller) = asked::caller()?;
    // Whoever may see the team's hooks may read this page's address; only owners get the form.
    asking.portal.hooks(&caller, &team, 1, None).await.map_err(asked::refusal)?;
    if !manages(&caller, &team) {
        let why = "Only owners of the team make and change hooks.";
        return Err(asked::refusal(portal::Error::new(ProblemKind::Forbidden, why)));
    }
    let mut form = asked::form(&asking, &caller)?;
    let mut chosen = form.values.get("offering").cloned().or(offering);
    if let Some(id) = id {
        let hook = asking.portal.hook(&caller, &team, &id).await.map_err(asked::refusal)?;
        chosen.get_or_insert(hook.definition.offering.to_string());
        // Of a form that comes back only what is not sent along is lacking: what its offering takes as a secret.
        let stands =
            values(&hook.definition).into_iter().chain([("version".to_owned(), hook.version.to_string())]);
        for (field, text) in stands {
            form.values.entry(field).or_insert(text);
        }
    }
    let all = asking.portal.offerings(&caller).into_iter().filter(|offering| offering.available);
    let all: Vec<OfferingView> = all.collect();
    let offering = all.iter().find(|offering| Some(offering.id.as_str()) == chosen.as_deref()).cloned();
    let offerings = all.into_iter().map(|offering| (offering.id.to_string(), offering.title)).collect();
    Ok(EditPage { offerings, offering, form })
}

/// The page from which a hook is tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestPage {
    /// The hook.
    pub hook: HookView,
    /// The test as it was sent, or as it begins.
    pub form: FormState,
    /// What it would do, where that was asked.
    pub trial: Option<HookTrial>,
}

/// The test of a hook; with a delivery, of what was delivered then.
#[server(prefix = "/rpc", endpoint = "hook-test")]
pub async fn hook_test(
    /// The team.
    team: String,
    /// The hook's ID.
    id: String,
    /// A delivery to begin with.
    delivery: Option<String>,
) -> Answer<TestPage> {
    use super::asked;
    use crate::forms::hook::{headers_text, pretty};

    let (asking, caller) = asked::caller()?;
    // Only owners may; asking for the list of deliveries says so.
    asking.portal.deliveries(&caller, &team, &id, 1, None).await.map_err(asked::refusal)?;
    let hook = asking.portal.hook(&caller, &team, &id).await.map_err(asked::refusal)?;
    let mut form = asked::form(&asking, &caller)?;
    if form.values.is_empty() {
        let sample = hook.definition.sample.as_ref();
        let (mut headers, mut payload) = (
            sample.map(|sample| headers_text(&sample.headers)).unwrap_or_default(),
            sample.map_or_else(|| "{\n}".to_owned(), |sample| pretty(&sample.payload.to_string())),
        );
        if let Some(delivery) = delivery {
            let found =
                asking.portal.delivery(&caller, &team, &id, &delivery).await.map_err(asked::refusal)?;
            headers = headers_text(&found.headers.unwrap_or_default());
            payload = pretty(&found.payload.unwrap_or_default());
        }
        form.values.insert("headers".to_owned(), headers);
        form.values.insert("payload".to_owned(), payload);
    }
    Ok(TestPage { hook, form, trial: use_context::<HookTrial>() })
}

/// One delivery with its payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeliveryPage {
    /// The hook.
    pub hook: HookView,
    /// The delivery.
    pub delivery: DeliveryView,
}

/// One delivery to a hook.
#[server(prefix = "/rpc", endpoint = "delivery")]
pub async fn delivery(
    /// The team.
    team: String,
    /// The hook's ID.
    id: String,
    /// The delivery's ID.
    delivery: String,
) -> Answer<DeliveryPage> {
    use super::asked;

    let (asking, caller) = asked::caller()?;
    let found = asking.portal.delivery(&caller, &team, &id, &delivery).await.map_err(asked::refusal)?;
    let hook = asking.portal.hook(&caller, &team, &id).await.map_err(asked::refusal)?;
    Ok(DeliveryPage { hook, delivery: found })
}
