import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import pg from 'pg';
import { decide, isByProject, readsAll, type SubjectFacts } from '../../src/shared/access/access-decision.ts';
import { allowedBy, deniedBy, permissionSet, permissions, usable } from '../../src/shared/access/permissions.ts';
import { rolePermissions, roles } from '../../src/shared/access/roles.ts';
import { nameMatches } from '../../src/shared/stacks/name-pattern.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

let database: TestDatabase;
let client: pg.Client;
let organization: string;

const projects = ['web', 'web-api', 'data'];
const stackNames = ['dev', 'prod', 'prod_eu', 'pr%d', 'a\\b'];
const values = ['blue', 'red'];
/** Every project has each of the stacks; the tags follow from the position. */
const stacks = projects.flatMap((project, at) =>
  stackNames.map((stack, index) => ({
    project,
    stack,
    tags:
      (at + index) % 3 === 0 ? {} : { team: values[(at + index) % 2] as string, ...(index > 2 ? { env: 'x' } : {}) },
  })),
);

beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  const { rows } = await client.query<{ id: string }>(`insert into organizations (name) values ('acme') returning id`);
  organization = rows[0]?.id as string;
  for (const { project, stack, tags } of stacks)
    await client.query(
      `with p as (insert into projects (organization_id, name) values ($1, $2)
         on conflict on constraint projects_name_key do update set name = excluded.name returning id)
       insert into stacks (project_id, name, tags) select id, $3, $4 from p`,
      [organization, project, stack, JSON.stringify(tags)],
    );
});
afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

const mask = fc.integer({ min: 0, max: 127 });
const pattern = (names: readonly string[]) =>
  fc.oneof(
    fc.constant(null),
    fc.constantFrom(...names, '*', 'pr*', '*d*', 'w*i', 'prod?', 'prodxeu', '*_eu', '', '**'),
  );
const scope = fc.record({ permissions: mask, project: pattern(projects), stack: pattern(stackNames) });
const grant = fc
  .record({
    deny: fc.boolean(),
    token: fc.boolean(),
    permissions: mask,
    project: pattern(projects),
    stack: pattern(stackNames),
    tag: fc.constantFrom(null, ['team', null], ['team', 'blue'], ['env', 'x'], ['none', null]),
  })
  .map(({ tag, ...rest }) => ({ ...rest, tagName: tag?.[0] ?? null, tagValue: tag?.[1] ?? null }));
const facts: fc.Arbitrary<SubjectFacts> = fc.record({
  base: mask,
  grants: fc.array(grant, { maxLength: 5 }),
  scopes: fc.option(fc.array(scope, { maxLength: 3 })),
});

test('the database decides about every stack as decide does', async () => {
  await fc.assert(
    fc.asyncProperty(facts, async (subject) => {
      const { rows } = await client.query<{ project: string; stack: string; held: number }>(
        `select l.project_name as project, l.stack_name as stack,
           effective_permissions($1, l.organization_id, l.project_name, l.stack_name) as held
         from stack_listings l where l.organization_id = $2 and l.tag_name = ''`,
        [JSON.stringify(subject), organization],
      );
      expect(rows).toHaveLength(stacks.length);
      const ofDatabase = Object.fromEntries(rows.map(({ project, stack, held }) => [`${project}/${stack}`, held]));
      const ofFunction = Object.fromEntries(
        stacks.map((stack) => [`${stack.project}/${stack.stack}`, decide(subject, stack)]),
      );
      expect(ofDatabase).toEqual(ofFunction);
    }),
    { numRuns: 300 },
  );
});

test('the database matches patterns as nameMatches does', async () => {
  const text = fc
    .array(fc.constantFrom(...'ab*%_\\.é\n', '👍'), { maxLength: 8 })
    .map((characters) => characters.join(''));
  const pairs = fc.sample(fc.tuple(text, text), { numRuns: 5_000, seed: 1 });
  const { rows } = await client.query<{ is_match: boolean }>(
    'select name_matches(p, n) as is_match from unnest($1::text[], $2::text[]) with ordinality as u (p, n, at) order by at',
    [pairs.map(([pattern]) => pattern), pairs.map(([, name]) => name)],
  );
  expect(rows.map((row) => row.is_match)).toEqual(pairs.map(([pattern, name]) => nameMatches(pattern, name)));
  expect(rows.filter((row) => row.is_match).length).toBeGreaterThan(100);
});

test('rights by project are those on each of its stacks', () => {
  const byProject = facts.map(({ base, grants, scopes }) => ({
    base,
    grants: grants.map((each) => ({ ...each, stack: null, tagName: null, tagValue: null })),
    scopes: scopes?.map((each) => ({ ...each, stack: null })) ?? null,
  }));
  fc.assert(fc.property(byProject, (subject) => expect(isByProject(subject)).toBe(true)));
  fc.assert(
    fc.property(fc.oneof(facts, byProject), fc.constantFrom(...stacks), (subject, stack) => {
      fc.pre(isByProject(subject));
      expect(decide(subject, stack)).toBe(decide(subject, { project: stack.project, stack: '', tags: {} }));
    }),
  );
});

test('who reads all stacks of a project reads each of them', () => {
  let readers = 0;
  fc.assert(
    fc.property(facts, fc.constantFrom(...stacks), (subject, stack) => {
      if (!readsAll(subject, stack.project)) return;
      readers += 1;
      expect(decide(subject, stack) & permissionSet(['read'])).toBe(permissionSet(['read']));
    }),
    { numRuns: 2_000 },
  );
  expect(readers).toBeGreaterThan(100);
});

test('a token never may do more than its owner without it', () => {
  fc.assert(
    fc.property(facts, fc.constantFrom(...stacks), (subject, stack) => {
      const owner = decide({ ...subject, scopes: null, grants: subject.grants.filter(({ token }) => !token) }, stack);
      expect(decide(subject, stack) & ~owner).toBe(0);
    }),
  );
});

test('outputs with decrypt allow no reading, and a token of a reader may be limited to them', () => {
  expect(allowedBy(['decrypt', 'outputs'])).toBe(permissionSet(['outputs', 'decrypt']));
  expect(allowedBy(['decrypt', 'outputs', 'read'])).toBe(permissionSet(['outputs', 'decrypt', 'read']));
  fc.assert(
    fc.property(facts, fc.constantFrom(...stacks), (subject, stack) => {
      const owner = decide({ ...subject, scopes: null, grants: subject.grants.filter(({ token }) => !token) }, stack);
      const scopes = [{ project: null, stack: null, permissions: allowedBy(['outputs', 'decrypt']) }];
      const held = decide({ ...subject, scopes, grants: subject.grants.filter(({ token }) => !token) }, stack);
      expect(held).toBe(owner & permissionSet(['outputs']) ? owner & allowedBy(['outputs', 'decrypt']) : 0);
    }),
  );
});

test('what is denied stays denied, whatever is allowed', () => {
  fc.assert(
    fc.property(facts, mask, fc.constantFrom(...stacks), (subject, permissions, stack) => {
      const denial = {
        deny: true,
        token: false,
        permissions,
        project: null,
        stack: null,
        tagName: null,
        tagValue: null,
      };
      expect(decide({ ...subject, grants: [denial, ...subject.grants] }, stack) & permissions).toBe(0);
    }),
  );
});

test('a missing permission takes those with it that need it', () => {
  for (const name of permissions) {
    expect(usable(allowedBy([name]))).toBe(allowedBy([name]));
    expect(usable(127 & ~deniedBy([name]))).toBe(127 & ~deniedBy([name]));
    if (name !== 'read') expect(usable(127 & ~permissionSet([name]))).toBe(127 & ~deniedBy([name]));
  }
  // Secret outputs are left.
  expect(usable(127 & ~permissionSet(['read']))).toBe(permissionSet(['outputs', 'decrypt']));
  expect(usable(permissionSet(['decrypt']))).toBe(0);
  expect(deniedBy(['read'])).toBe(permissionSet(['read', 'preview', 'write', 'admin', 'decrypt', 'manage']));
  expect(deniedBy(['write'])).toBe(permissionSet(['write', 'admin']));
});

test('the database knows the roles as the code does', async () => {
  for (const role of roles) {
    const { rows } = await client.query('select role_permissions($1) as held', [role]);
    expect(rows).toEqual([{ held: rolePermissions[role] }]);
  }
});
