//! Saved views: whose they are and who sees them.

use crate::{
    Caller,
    provisioner::fake::Fake,
    service::{ViewOf, ViewToSave},
    testing::{House, Plan},
};
use domain::{
    problem::ProblemKind::{self, Forbidden, InvalidParameters, NotFound},
    role::{PortalRole, TeamRole},
};

fn view(of: ViewOf, name: &str, shared: bool) -> ViewToSave {
    ViewToSave { of, name: name.into(), filter: "q=x".into(), shared, replace: false }
}

fn alpha() -> ViewOf {
    ViewOf::Team("alpha".into())
}

#[tokio::test]
async fn a_view_is_seen_by_whom_it_is_for_and_by_nobody_else() {
    let house = House::build(Plan::of(Fake::default())).await;
    let portal = &house.portal;
    let abe = house.person("abe", "alpha", TeamRole::Viewer).await;
    let ben = house.person("ben", "beta", TeamRole::Member).await;
    portal.save_view(&house.ann, view(alpha(), "mine", false)).await.unwrap();
    portal.save_view(&house.ann, view(alpha(), " ours ", true)).await.unwrap();
    let names = async |caller: &Caller| {
        let views = portal.views(caller, &alpha()).await;
        views.map(|views| views.into_iter().map(|view| view.name).collect::<Vec<_>>())
    };
    assert_eq!(names(&house.ann).await.unwrap(), ["mine", "ours"]);
    assert_eq!(names(&abe).await.unwrap(), ["ours"]);
    assert_eq!(names(&ben).await.unwrap_err().kind, NotFound);
    let ours = portal.views(&abe, &alpha()).await.unwrap().remove(0).id.to_string();
    assert_eq!(portal.remove_view(&abe, &ours).await.unwrap_err().kind, NotFound);
    portal.remove_view(&house.ann, &ours).await.unwrap();
    assert_eq!(portal.remove_view(&house.ann, &ours).await.unwrap_err().kind, NotFound);
    assert!(names(&abe).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_view_that_one_may_not_save_is_refused() {
    let house = House::build(Plan::of(Fake::default())).await;
    let viewer = house.person("vic", "alpha", TeamRole::Viewer).await;
    let admin = Caller { role: PortalRole::Admin, ..house.ann.clone() };
    let refused = async |caller: &Caller, view: ViewToSave| -> ProblemKind {
        house.portal.save_view(caller, view).await.unwrap_err().kind
    };
    assert_eq!(refused(&house.ann, view(ViewOf::All, "x", false)).await, Forbidden);
    assert_eq!(refused(&house.ann, view(ViewOf::Team("beta".into()), "x", false)).await, NotFound);
    assert_eq!(refused(&viewer, view(alpha(), "x", true)).await, Forbidden);
    assert_eq!(refused(&house.ann, view(ViewOf::Mine, "x", true)).await, InvalidParameters);
    for name in ["", "  ", "a\nb", &"x".repeat(81)] {
        assert_eq!(refused(&house.ann, view(ViewOf::Mine, name, false)).await, InvalidParameters);
    }
    let long = ViewToSave { filter: "q=".to_owned() + &"x".repeat(8_000), ..view(ViewOf::Mine, "x", false) };
    assert_eq!(refused(&house.ann, long).await, InvalidParameters);
    house.portal.save_view(&viewer, view(alpha(), "own", false)).await.unwrap();
    house.portal.save_view(&admin, view(ViewOf::All, "all", false)).await.unwrap();
    for number in 0..49 {
        house.portal.save_view(&viewer, view(ViewOf::Mine, &number.to_string(), false)).await.unwrap();
    }
    assert_eq!(refused(&viewer, view(ViewOf::Mine, "one more", false)).await, InvalidParameters);
}

#[tokio::test]
async fn a_view_takes_the_place_of_another_only_when_that_is_said() {
    let house = House::build(Plan::of(Fake::default())).await;
    let save = async |filter: &str, shared, replace| {
        let view = ViewToSave { filter: filter.into(), replace, ..view(alpha(), "mine", shared) };
        house.portal.save_view(&house.ann, view).await.map_err(|error| error.fields[0].pointer.clone())
    };
    save("q=x", true, false).await.unwrap();
    save("q=x", true, false).await.expect("the same again leaves the same");
    assert_eq!(save("q=y", true, false).await.unwrap_err(), "/name");
    assert_eq!(
        save("q=x", false, false).await.unwrap_err(),
        "/name",
        "nor does it stop being shared unasked"
    );
    let views = async || {
        let views = house.portal.views(&house.ann, &alpha()).await.unwrap();
        views.into_iter().map(|view| (view.filter, view.shared)).collect::<Vec<_>>()
    };
    assert_eq!(views().await, [("q=x".to_owned(), true)]);
    save("q=y", false, true).await.unwrap();
    assert_eq!(views().await, [("q=y".to_owned(), false)]);
}

#[test]
fn a_list_has_one_address() {
    for of in [ViewOf::Mine, ViewOf::All, alpha()] {
        assert_eq!(ViewOf::at(&of.path()), Some(of));
    }
    for path in [
        "/",
        "/tokens",
        "/teams/alpha/resources",
        "/teams/No Team/requests",
        "//evil.example",
        "/teams//requests",
    ] {
        assert_eq!(ViewOf::at(path), None, "{path}");
    }
}
