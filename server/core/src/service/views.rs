//! Saved views of lists of requests: a person's own, and what the people of a team share with each other. Saving needs no
//! key: the same again leaves the same.

use super::Portal;
use crate::{
    Caller, Error, Result,
    store::views::{NewView, Saved},
};
use domain::{
    id::ViewId,
    name::Name,
    problem::ProblemKind,
    role::TeamAct,
    saved::{MAX_VIEW_FILTER_LENGTH, MAX_VIEW_NAME_LENGTH, MOST_VIEWS, SavedView},
};

/// A list of requests that there are views of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewOf {
    /// One's own requests.
    Mine,
    /// All of them; for administrators.
    All,
    /// A team's.
    Team(String),
}

impl ViewOf {
    /// The list at this address.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        match path {
            "/requests" => Some(Self::Mine),
            "/history" => Some(Self::All),
            _ => {
                let team = path.strip_prefix("/teams/")?.strip_suffix("/requests")?;
                Some(Self::Team(Name::parse(team).ok()?.to_string()))
            }
        }
    }

    /// Its address.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            Self::Mine => "/requests".into(),
            Self::All => "/history".into(),
            Self::Team(team) => format!("/teams/{team}/requests"),
        }
    }
}

/// A view that somebody wants to save.
#[derive(Debug, Clone)]
pub struct ViewToSave {
    /// The list.
    pub of: ViewOf,
    /// What it is to be called.
    pub name: String,
    /// The filter, as the page's address spells it.
    pub filter: String,
    /// Whether the team that the list is about is to see it.
    pub shared: bool,
    /// Whether it may take the place of another of one's own of the same name.
    pub replace: bool,
}

impl Portal {
    /// Saves a view; another one of the same name is replaced only where that is said.
    pub async fn save_view(&self, caller: &Caller, view: ViewToSave) -> Result<()> {
        let team = self.viewed(caller, &view.of).await?;
        let name = view.name.trim();
        if name.is_empty()
            || name.chars().count() > MAX_VIEW_NAME_LENGTH
            || name.chars().any(char::is_control)
        {
            return Err(Error::field("/name", format!("1 to {MAX_VIEW_NAME_LENGTH} characters")));
        }
        if view.filter.len() > MAX_VIEW_FILTER_LENGTH {
            return Err(Error::field("/filter", "is longer than a view may be"));
        }
        if view.shared {
            match &team {
                Some(team) => caller.must(TeamAct::Request, team)?,
                None => {
                    return Err(Error::field("/shared", "only views of a team's list are shared with it"));
                }
            }
        }
        let now = self.0.clock.now();
        let new = NewView {
            id: ViewId(self.0.ids.uuid(now)),
            principal: caller.id,
            page: view.of.path(),
            name: name.to_owned(),
            filter: view.filter,
            team: team.filter(|_| view.shared),
            replace: view.replace,
            at: now,
        };
        match self.0.store.save_view(new, MOST_VIEWS).await? {
            Saved::New | Saved::Replaced => Ok(()),
            Saved::Exists => Err(Error::field(
                "/name",
                "you have a view of this name, of something else or shown to others; replace it, or choose another name",
            )),
            Saved::TooMany => Err(Error::field(
                "/name",
                format!("you have {MOST_VIEWS} views, as many as one may have; remove one first"),
            )),
        }
    }

    /// The views of a list: one's own, and those that the people of its team share.
    pub async fn views(&self, caller: &Caller, of: &ViewOf) -> Result<Vec<SavedView>> {
        let team = self.viewed(caller, of).await?;
        Ok(self.0.store.views(caller.id, &of.path(), team.as_ref()).await?)
    }

    /// Removes an own view; one that is not there, or not one's own, is not found.
    pub async fn remove_view(&self, caller: &Caller, id: &str) -> Result<()> {
        let id: ViewId = id.parse().map_err(|_| Error::not_found())?;
        if self.0.store.remove_view(caller.id, id).await? { Ok(()) } else { Err(Error::not_found()) }
    }

    /// The team that a list is about, if the caller may see the list.
    async fn viewed(&self, caller: &Caller, of: &ViewOf) -> Result<Option<Name>> {
        match of {
            ViewOf::Mine => Ok(None),
            ViewOf::All if caller.is_admin() => Ok(None),
            ViewOf::All => {
                Err(Error::new(ProblemKind::Forbidden, "The history of all teams is for administrators."))
            }
            ViewOf::Team(team) => self.0.visible_team(caller, team).await.map(Some),
        }
    }
}
