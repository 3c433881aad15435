-- What is sealed of work that goes on elsewhere is found by the version of the key that it is sealed with, to be sealed
-- anew with another.
CREATE INDEX errand_secret_seal ON errand (substr(secret, 1, 6));
CREATE INDEX errand_note_seal ON errand (substr(note, 1, 6)) WHERE note IS NOT NULL;
CREATE INDEX errand_outcome_seal ON errand (substr(outcome, 1, 6)) WHERE outcome IS NOT NULL;
