import { expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { testApp } from '../support/test-app.ts';

// Deleting a row searches each table that refers to it: without an index, all of that table is read for every deleted row.

const app = testApp();

const usersStay = 'users are never deleted';
/** Foreign keys that no index serves, and why. */
const unindexed: Readonly<Record<string, string>> = {
  api_tokens_created_by_fkey: usersStay,
  grants_created_by_fkey: usersStay,
  trust_policies_created_by_fkey: usersStay,
  trusted_issuers_created_by_fkey: usersStay,
  updates_requested_by_fkey: usersStay,
  webhooks_created_by_fkey: usersStay,
};

test('each foreign key has an index that finds the rows that refer to one, or a reason to have none', async () => {
  // Of a partial index, the condition has to follow from a search for a value.
  const found = await query<{ name: string }>(
    app,
    `select k.conname as name from pg_constraint k
     where k.contype = 'f' and k.connamespace = 'public'::regnamespace and k.conparentid = 0 and not exists (
       select 1 from pg_index i
       where i.indrelid = k.conrelid and i.indisvalid
         and (i.indkey::smallint[])[0:cardinality(k.conkey) - 1] @> k.conkey
         and (i.indpred is null or pg_get_expr(i.indpred, i.indrelid) in (
           select '(' || quote_ident(a.attname) || ' IS NOT NULL)' from pg_attribute a
           where a.attrelid = k.conrelid and a.attnum = any (k.conkey))))
     order by 1`,
  );
  expect(found.map(({ name }) => name)).toEqual(Object.keys(unindexed).sort());
});
