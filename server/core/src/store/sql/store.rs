//! The store's promises, each as a piece of work on one connection.

use super::{
    arrivals,
    dialect::{self, Database},
    exactly_one, lists, lives, people, runs,
    seals::{self, RESOURCES},
    second_look, sweep, write_audit,
};
use crate::{
    keys,
    store::{
        Arrived, AuditEntry, Bearer, Claim, Ending, Held, Hold, Intent, Made, NewPrincipal, Principal, Run,
        Scope, Store, StoreResult, StoredRequest, StoredResource, Submission, Submitted, Tally,
        changes::Changes,
    },
};
use async_trait::async_trait;
use domain::{
    id::{PrincipalId, RequestId, ResourceId, TokenId},
    name::Name,
    time::Moment,
    view::{EventEntry, EventView, Page, RequestView, ResourceView, SubmissionsView, TokenView},
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

#[async_trait]
impl Store for Database {
    fn changes(&self) -> &Changes {
        self.heard()
    }

    async fn claimed(&self, scope: &Scope) -> StoreResult<Option<(Claim, Option<StoredRequest>)>> {
        self.looks().claims.ask(scope.clone()).await?
    }

    async fn submit(&self, submission: Submission) -> StoreResult<Submitted> {
        let submitted = self.decide(submission).await?;
        match &submitted {
            Submitted::First(_, Some(request)) => self.tell(*request),
            Submitted::Accepted(_, request, also) => {
                also.iter().chain([request]).for_each(|request| self.tell(*request));
            }
            _ => {}
        }
        Ok(submitted)
    }

    async fn key_in_use(&self, scope: &Scope) -> StoreResult<bool> {
        self.key_in_use(scope).await
    }

    async fn record(&self, arrivals: Arc<[Arrived]>) -> StoreResult<()> {
        self.write(arrivals, |arrivals, connection| Box::pin(arrivals::record(connection, arrivals))).await
    }

    async fn tally(&self, tallies: Arc<[Tally]>) -> StoreResult<u64> {
        self.write(tallies, |tallies, connection| Box::pin(arrivals::tally(connection, tallies))).await
    }

    async fn same_creates(
        &self,
        team: &Name,
        offering: &Name,
        parameters: [u8; 32],
        since: Moment,
        limit: u32,
    ) -> StoreResult<Vec<RequestView>> {
        let given = (team.as_str(), offering.as_str(), parameters, since, limit);
        self.read(given, |(team, offering, parameters, since, limit), connection| {
            Box::pin(second_look::same(connection, (team, offering), parameters, *since, *limit))
        })
        .await
    }

    async fn retire(&self, now: Moment, retention: Duration, limit: u32) -> StoreResult<u64> {
        let given = (now, retention, limit);
        let of_requests = self
            .write(given, |(now, retention, limit), connection| {
                Box::pin(sweep::requests(connection, *now, *retention, *limit))
            })
            .await?;
        let of_themselves = self
            .write(given, |(now, retention, limit), connection| {
                Box::pin(sweep::claims(connection, *now, *retention, *limit))
            })
            .await?;
        Ok(of_requests.max(of_themselves))
    }

    async fn retire_request(&self, id: RequestId, now: Moment, retention: Duration) -> StoreResult<()> {
        self.write((id, now, retention), |(id, now, retention), connection| {
            Box::pin(sweep::one_request(connection, *id, *now, *retention))
        })
        .await
    }

    async fn drop_tombstones(
        &self,
        now: Moment,
        retention: Duration,
        tombstones: Duration,
        limit: u32,
    ) -> StoreResult<u64> {
        self.write((now, (retention, tombstones), limit), |(now, kept, limit), connection| {
            Box::pin(sweep::tombstones(connection, *now, *kept, *limit))
        })
        .await
    }

    async fn drop_claim(&self, scope: &Scope, claim: &Claim, before: Moment) -> StoreResult<()> {
        self.write((scope.clone(), claim.clone(), before), |(scope, claim, before), connection| {
            Box::pin(sweep::one(connection, scope, claim, *before))
        })
        .await
    }

    async fn key_use(&self) -> StoreResult<BTreeMap<i64, keys::Use>> {
        self.snapshot((), |(), connection| Box::pin(seals::key_use(connection))).await
    }

    async fn sealed_otherwise(&self, head: &[u8], limit: u32) -> StoreResult<Vec<(ResourceId, Vec<u8>)>> {
        let found = self
            .read((head, limit), |(head, limit), connection| {
                Box::pin(seals::sealed_otherwise(connection, RESOURCES, head, *limit))
            })
            .await?;
        Ok(found.into_iter().map(|(id, sealed)| (ResourceId(id), sealed)).collect())
    }

    async fn reseal(&self, resource: ResourceId, before: Vec<u8>, after: Vec<u8>) -> StoreResult<bool> {
        self.write((resource, before, after), |(resource, before, after), connection| {
            Box::pin(seals::reseal(connection, RESOURCES, resource.0, before, after))
        })
        .await
    }

    async fn keep_schema(&self, digest: &str, schema: &str) -> StoreResult<()> {
        self.write((digest.to_owned(), schema.to_owned()), |(digest, schema), connection| {
            Box::pin(async move {
                sqlx::query("INSERT INTO offering_schema (digest, schema) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING")
                    .bind(digest)
                    .bind(schema)
                    .execute(connection)
                    .await?;
                Ok(())
            })
        })
        .await
    }

    async fn schema(&self, digest: &str) -> StoreResult<Option<String>> {
        self.read(digest, |digest, connection| {
            Box::pin(async move {
                Ok(sqlx::query_scalar("SELECT schema FROM offering_schema WHERE digest = $1")
                    .bind(*digest)
                    .fetch_optional(connection)
                    .await?)
            })
        })
        .await
    }

    async fn request(&self, id: RequestId) -> StoreResult<Option<StoredRequest>> {
        self.read(id, |id, connection| Box::pin(lists::request(connection, *id))).await
    }

    async fn events(&self, request: RequestId, after: i64, limit: u32) -> StoreResult<Vec<EventView>> {
        self.read((request, after, limit), |(request, after, limit), connection| {
            Box::pin(lists::events(connection, *request, *after, *limit))
        })
        .await
    }

    async fn submissions(&self, request: RequestId) -> StoreResult<SubmissionsView> {
        // As above: what is counted and not shown would else be what came in between.
        self.snapshot(request, |request, connection| Box::pin(arrivals::of_request(connection, *request)))
            .await
    }

    async fn resources(
        &self,
        team: &Name,
        after: Option<(Moment, uuid::Uuid)>,
        size: u32,
    ) -> StoreResult<Page<ResourceView>> {
        self.snapshot((team, after, size), |(team, after, size), connection| {
            Box::pin(lists::resources(connection, team, *after, *size))
        })
        .await
    }

    async fn resource(&self, team: &Name, kind: &str, name: &str) -> StoreResult<Option<StoredResource>> {
        self.read((team, kind, name), |(team, kind, name), connection| {
            Box::pin(lists::resource(connection, team.as_str(), kind, name))
        })
        .await
    }

    async fn last_deleted(&self, team: &Name, kind: &str, name: &str) -> StoreResult<Option<StoredResource>> {
        self.read((team, kind, name), |(team, kind, name), connection| {
            Box::pin(lives::last_deleted(connection, team.as_str(), kind, name))
        })
        .await
    }

    async fn life(&self, id: ResourceId) -> StoreResult<Option<StoredResource>> {
        self.read(id, |id, connection| Box::pin(lives::life(connection, *id))).await
    }

    async fn requests_of(&self, id: ResourceId) -> StoreResult<(Vec<RequestView>, Vec<RequestView>)> {
        self.snapshot(id, |id, connection| Box::pin(lives::requests_of(connection, *id))).await
    }

    async fn time(&self) -> StoreResult<Option<Moment>> {
        if dialect::CLOCKS_ARE_SERVERS {
            return Ok(None);
        }
        let shown = self.read((), |(), connection| Box::pin(runs::time(connection))).await?;
        Ok(Some(shown))
    }

    async fn bound_waits(&self, now: Moment, lease: Duration) -> StoreResult<()> {
        if dialect::CLOCKS_ARE_SERVERS {
            self.write((now, lease), |(now, lease), connection| {
                Box::pin(runs::bound_waits(connection, *now, *lease))
            })
            .await?;
        }
        Ok(())
    }

    async fn take_run(&self, owner: &str, now: Moment, lease: Duration) -> StoreResult<Option<Run>> {
        // Most looks find nothing; those should not cost a commit.
        if !self.read(now, |now, connection| Box::pin(runs::any_due(connection, *now))).await? {
            return Ok(None);
        }
        let run = self
            .write((owner.to_owned(), now, lease), |(owner, now, lease), connection| {
                Box::pin(runs::take(connection, owner, *now, *lease))
            })
            .await?;
        if let Some(run) = &run {
            // One wake-up may stand for many runs: this passes it on.
            self.tell(run.request.view.id);
        }
        Ok(run)
    }

    async fn renew(&self, hold: Hold, now: Moment, lease: Duration) -> StoreResult<Held> {
        self.write((hold, now, lease), |(hold, now, lease), connection| {
            Box::pin(runs::renew(connection, *hold, *now, *lease))
        })
        .await
    }

    async fn note(
        &self,
        hold: Hold,
        entries: Vec<EventEntry>,
        touched: bool,
        now: Moment,
    ) -> StoreResult<Held> {
        let still = self
            .write((hold, entries, touched, now), |(hold, entries, touched, now), connection| {
                Box::pin(runs::note(connection, *hold, entries, *touched, *now))
            })
            .await?;
        self.tell(hold.request);
        Ok(still)
    }

    async fn give_back(
        &self,
        hold: Hold,
        meant: Intent,
        wait: Duration,
        failed_try: bool,
        entry: Option<EventEntry>,
        now: Moment,
    ) -> StoreResult<Held> {
        let still = self
            .write(
                (hold, meant, wait, failed_try, entry, now),
                |(hold, meant, wait, failed_try, entry, now), connection| {
                    let entry = entry.as_ref();
                    Box::pin(runs::give_back(connection, (*hold, *meant), *wait, *failed_try, entry, *now))
                },
            )
            .await?;
        self.tell(hold.request);
        Ok(still)
    }

    async fn take_point_back(&self, hold: Hold, touched: bool, insisted: bool) -> StoreResult<Held> {
        self.write((hold, (touched, insisted)), |(hold, before), connection| {
            Box::pin(runs::take_point_back(connection, *hold, *before))
        })
        .await
    }

    async fn pass_on(
        &self,
        hold: Hold,
        wait: Duration,
        entry: Option<EventEntry>,
        now: Moment,
    ) -> StoreResult<Held> {
        let still = self
            .write((hold, wait, entry, now), |(hold, wait, entry, now), connection| {
                Box::pin(runs::pass_on(connection, *hold, *wait, entry.as_ref(), *now))
            })
            .await?;
        self.tell(hold.request);
        Ok(still)
    }

    async fn end_run(&self, hold: Hold, ending: Ending, now: Moment) -> StoreResult<Held> {
        let still = self
            .write((hold, ending, now), |(hold, ending, now), connection| {
                Box::pin(runs::end(connection, *hold, ending, *now))
            })
            .await?;
        self.tell(hold.request);
        Ok(still)
    }

    async fn next_due(&self) -> StoreResult<Option<Moment>> {
        self.read((), |(), connection| {
            Box::pin(async move {
                let due: Option<i64> =
                    sqlx::query_scalar("SELECT min(due_at) FROM run").fetch_one(connection).await?;
                Ok(due.map(Moment::from_millis))
            })
        })
        .await
    }

    async fn principal_by_name(&self, name: &str) -> StoreResult<Option<Principal>> {
        self.read(name, |name, connection| Box::pin(people::by_name(connection, name))).await
    }

    async fn principal(&self, id: PrincipalId) -> StoreResult<Option<Principal>> {
        self.read(id, |id, connection| Box::pin(people::by_id(connection, *id))).await
    }

    async fn add_principal(&self, principal: NewPrincipal, now: Moment) -> StoreResult<Made> {
        self.write((principal, now), |(principal, now), connection| {
            Box::pin(people::add(connection, principal, *now))
        })
        .await
    }

    async fn add_team(&self, name: &Name, limit: Option<u64>, now: Moment) -> StoreResult<Made> {
        self.write((name.clone(), limit, now), |(name, limit, now), connection| {
            Box::pin(people::add_team(connection, name, *limit, *now))
        })
        .await
    }

    async fn has_team(&self, name: &Name) -> StoreResult<bool> {
        self.read(name, |name, connection| Box::pin(people::has_team(connection, name))).await
    }

    async fn set_up(&self, principal: NewPrincipal, now: Moment) -> StoreResult<Made> {
        self.write((principal, now), |(principal, now), connection| {
            Box::pin(people::set_up(connection, principal, *now))
        })
        .await
    }

    async fn has_admin(&self) -> StoreResult<bool> {
        self.read((), |(), connection| Box::pin(people::has_admin(connection))).await
    }

    async fn bearer(&self, digest: [u8; 32], now: Moment) -> StoreResult<Option<Bearer>> {
        Ok(self.looks().bearers.ask(digest).await??.filter(|bearer| bearer.expires_at > now))
    }

    async fn tokens(&self, principal: PrincipalId) -> StoreResult<Vec<TokenView>> {
        self.read(principal, |principal, connection| Box::pin(people::tokens(connection, *principal))).await
    }

    async fn add_token(&self, principal: PrincipalId, token: TokenView, digest: [u8; 32]) -> StoreResult<()> {
        self.write((principal, token, digest), |(principal, token, digest), connection| {
            Box::pin(people::add_token(connection, *principal, token, *digest))
        })
        .await
    }

    async fn tokens_used(&self, mut tokens: Vec<TokenId>, now: Moment) -> StoreResult<()> {
        // In one order, so that two servers that note the same tokens never wait for each other.
        tokens.sort_unstable_by_key(|token| token.0);
        self.write((tokens, now), |(tokens, now), connection| {
            Box::pin(people::tokens_used(connection, tokens, *now))
        })
        .await
    }

    async fn session(&self, id: &str, now: Moment) -> StoreResult<Option<Vec<u8>>> {
        self.read((id, now), |(id, now), connection| Box::pin(people::session(connection, id, *now))).await
    }

    async fn save_session(&self, id: &str, data: Vec<u8>, expires: Moment, fresh: bool) -> StoreResult<bool> {
        self.write((id.to_owned(), data, expires, fresh), |(id, data, expires, fresh), connection| {
            Box::pin(people::save_session(connection, id, data, *expires, *fresh))
        })
        .await
    }

    async fn delete_session(&self, id: &str) -> StoreResult<()> {
        self.write(id.to_owned(), |id, connection| Box::pin(people::delete_session(connection, id))).await
    }

    async fn sweep_sessions(&self, now: Moment, limit: u32) -> StoreResult<u64> {
        self.write((now, limit), |(now, limit), connection| {
            Box::pin(people::sweep_sessions(connection, *now, *limit))
        })
        .await
    }

    async fn setting(&self, name: &str) -> StoreResult<Option<Vec<u8>>> {
        self.read(name, |name, connection| {
            Box::pin(async move {
                Ok(sqlx::query_scalar("SELECT value FROM setting WHERE name = $1")
                    .bind(*name)
                    .fetch_optional(connection)
                    .await?)
            })
        })
        .await
    }

    async fn set_once(&self, name: &str, value: Vec<u8>) -> StoreResult<Vec<u8>> {
        self.write((name.to_owned(), value), |(name, value), connection| {
            Box::pin(async move {
                sqlx::query(
                    "INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
                )
                .bind(name)
                .bind(value)
                .execute(&mut *connection)
                .await?;
                Ok(sqlx::query_scalar("SELECT value FROM setting WHERE name = $1")
                    .bind(name)
                    .fetch_one(connection)
                    .await?)
            })
        })
        .await
    }

    async fn audit(&self, entry: AuditEntry) -> StoreResult<()> {
        self.write(entry, |entry, connection| Box::pin(write_audit(connection, entry))).await
    }

    async fn probe(&self, now: Moment) -> StoreResult<()> {
        self.write(now, |now, connection| {
            Box::pin(async move {
                let done = sqlx::query(
                    "INSERT INTO setting (name, value) VALUES ('probe', $1)
                     ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                )
                .bind(now.millis().to_string().into_bytes())
                .execute(connection)
                .await?;
                exactly_one(&done, "probe")
            })
        })
        .await
    }
}
