//! Saved views.

use super::*;
use crate::store::views::{NewView, Saved};
use domain::id::ViewId;

impl Bench {
    async fn person_of_blue(&self, who: &str) -> PrincipalId {
        self.store.add_team(&name("blue"), None, self.now()).await.unwrap();
        let person = self.someone(who, PortalRole::Member, Some("blue"));
        let id = person.id;
        assert_eq!(self.store.add_principal(person, self.now()).await.unwrap(), Made::New);
        id
    }

    async fn saved(&self, principal: PrincipalId, page: &str, called: &str, team: bool) -> Saved {
        let view = NewView {
            id: ViewId(self.id()),
            principal,
            page: page.into(),
            name: called.into(),
            filter: format!("q={called}"),
            team: team.then(|| name("blue")),
            replace: true,
            at: self.now(),
        };
        self.store.save_view(view, 3).await.unwrap()
    }
}

pub(super) async fn views_are_a_persons_own_unless_they_are_shared(bench: Bench) {
    let (ann, abe) = (bench.person_of_blue("ann").await, bench.person_of_blue("abe").await);
    let page = "/teams/blue/requests";
    assert_eq!(bench.saved(ann, page, "mine", false).await, Saved::New);
    assert_eq!(bench.saved(ann, page, "ours", true).await, Saved::New);
    assert_eq!(bench.saved(ann, "/requests", "mine", false).await, Saved::New);
    let blue = name("blue");
    let seen = async |who, page: &str, team| {
        let views = bench.store.views(who, page, team).await.unwrap();
        views.into_iter().map(|view| (view.name, view.shared, view.by)).collect::<Vec<_>>()
    };
    let own = |called: &str, shared| (called.to_owned(), shared, None);
    assert_eq!(seen(ann, page, Some(&blue)).await, [own("mine", false), own("ours", true)]);
    assert_eq!(seen(abe, page, Some(&blue)).await, [("ours".to_owned(), true, Some("ann".to_owned()))]);
    assert!(seen(abe, page, None).await.is_empty());
    // Only whose it is takes it away, and once.
    let views = bench.store.views(ann, page, Some(&blue)).await.unwrap();
    assert!(!bench.store.remove_view(abe, views[1].id).await.unwrap());
    assert!(bench.store.remove_view(ann, views[1].id).await.unwrap());
    assert!(!bench.store.remove_view(ann, views[1].id).await.unwrap());
    assert!(seen(abe, page, Some(&blue)).await.is_empty());
}

pub(super) async fn a_view_of_the_same_name_takes_the_place_of_the_other_and_they_are_few(bench: Bench) {
    let ann = bench.person_of_blue("ann").await;
    for called in ["one", "two", "three"] {
        assert_eq!(bench.saved(ann, "/requests", called, false).await, Saved::New);
    }
    assert_eq!(bench.saved(ann, "/requests", "four", false).await, Saved::TooMany);
    assert_eq!(bench.saved(ann, "/requests", "two", true).await, Saved::Replaced);
    let views = bench.store.views(ann, "/requests", None).await.unwrap();
    assert_eq!(views.len(), 3);
    assert!(views.iter().any(|view| view.name == "two" && view.shared));
    // Of many at once no more are kept than one may have.
    let abe = bench.person_of_blue("abe").await;
    let bench = Arc::new(bench);
    let tasks: Vec<_> = (0..10)
        .map(|number| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move { bench.saved(abe, "/requests", &format!("view {number}"), false).await })
        })
        .collect();
    let mut new = 0;
    for task in tasks {
        new += usize::from(task.await.unwrap() == Saved::New);
    }
    assert_eq!((new, bench.store.views(abe, "/requests", None).await.unwrap().len()), (3, 3));
}
