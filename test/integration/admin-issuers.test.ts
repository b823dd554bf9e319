import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createExchangeRepository } from '../../src/shared/identity/trust/exchange-repository.ts';
import { deleteEndedTokens } from '../../src/workers/identity/delete-tokens.ts';
import { runAdminCommand } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { exchange } from '../support/exchange.ts';
import { person } from '../support/grants.ts';
import { ok } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { makeKey, TestIssuer } from '../support/test-issuer.ts';

let issuer: TestIssuer;
let app: TestApp;
beforeAll(async () => {
  issuer = await TestIssuer.start();
  app = await createTestApp({ overrides: { outgoing: issuer.outgoing() } });
});
afterAll(async () => {
  await app?.[Symbol.asyncDispose]();
  await issuer?.[Symbol.asyncDispose]();
});

const run = (...args: string[]) => runAdminCommand(app, 'issuer', ...args, '--organization', 'acme');
const runOk = async (...args: string[]): Promise<string> => {
  const { code, stderr, stdout } = await run(...args);
  if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
  return stdout;
};
const userOf = (token: string) => app.call('GET', '/api/user', { auth: `token ${token}` });

describe('holdfast admin issuer', () => {
  test('adds an issuer and policies, lists them, and removes them with the tokens that they issued', async () => {
    const ada = await person(app, 'acme', 'member');
    await runOk('add', 'github', '--url', issuer.url, '--max-seconds', '3600');
    const [, id = ''] = /policy (\S+)\./.exec(await runOk('allow', 'github', '--rule', 'sub=repo:acme/*')) ?? [];
    // An operator may let CI act as anybody.
    await runOk(
      'allow',
      'github',
      '--rule',
      'sub=repo:acme/web*',
      'run_id=*',
      '--user',
      ada.login,
      '--scope',
      'read:web/*',
    );
    const give = async (scope = '') =>
      (await ok(exchange(app, 'acme', await issuer.sign('acme'), { scope }))).json.access_token as string;
    const [token, personal] = [await give(), await give(`user:${ada.login}`)];
    expect((await ok(userOf(personal))).json.githubLogin).toBe(ada.login);
    const listed = await runOk('list');
    expect(listed).toContain(`github  ${issuer.url}  urn:pulumi:org:acme  once  3600 s`);
    expect(listed).toContain(`${id}  allow organization  {"sub":"repo:acme/*"}`);
    expect(listed).toContain('{"permissions":["read"],"stacks":"web/*"}');
    expect(await runOk('drop', 'github', id)).toContain('Removed.');
    expect((await userOf(token)).status).toBe(401);
    await ok(userOf(personal));
    await runOk('deny', 'github', '--rule', 'run_id=123456', '--type', 'team');
    await ok(userOf(personal));
    await runOk('deny', 'github', '--rule', 'run_id=123456');
    expect((await userOf(personal)).status).toBe(401);
    await runOk('remove', 'github');
    expect(await runOk('list')).toBe('');
    const events = await query(app, "select action, object from audit_events where actor = 'operator' order by number");
    expect(events.map(({ action, object }) => `${action} ${object}`)).toEqual([
      'issuer.add github',
      ...Array.from({ length: 5 }, () => 'issuer.policies github'),
      'issuer.remove github',
    ]);
  });

  test('reads keys from a file, and refuses private ones', async () => {
    const { jwk, ...key } = await makeKey('ES256', 'one');
    const file = path.join(app.dataDir, 'keys.json');
    writeFileSync(file, JSON.stringify({ keys: [{ ...jwk, d: 'private' }] }));
    expect((await run('add', 'cluster', '--url', 'https://cluster.internal', '--keys', file)).stderr).toContain(
      'public',
    );
    writeFileSync(file, JSON.stringify({ keys: [jwk] }));
    await runOk('add', 'cluster', '--url', 'https://cluster.internal', '--keys', file, '--audience', 'holdfast');
    await runOk('allow', 'cluster', '--rule', 'sub=repo:acme/*', '--service', '--scope', 'write:web/*');
    const claims = { iss: 'https://cluster.internal', aud: 'holdfast' };
    await ok(exchange(app, 'acme', await issuer.sign('acme', claims, { key: { ...key, jwk } })));
  });

  test('refuses what is not right', async () => {
    await runOk('add', 'gitlab', '--url', 'https://gitlab.example');
    const long = (at: number) => `sub=${String(at).padEnd(500, 'x')}`;
    const rules = (count: number) => Array.from({ length: count }, (_, at) => long(at));
    // In all: each of them is short enough.
    for (let at = 0; at < 2; at++) await runOk('allow', 'gitlab', '--rule', ...rules(50));
    const tooMany = ['--rule', ...rules(50)];
    const wrong: [string[], RegExp][] = [
      [['add', 'gitlab', '--url', 'https://other.example'], /has an issuer with this name/],
      [['add', 'other', '--url', 'https://gitlab.example'], /has an issuer with this URL/],
      [['add', 'other', '--url', 'gitlab.example'], /the `iss` of its tokens/],
      [['add', 'other', '--url', 'https://x.example', '--replay', 'twice'], /replay is once or within-life/],
      [['allow', 'gitlab', '--rule', 'sub=*'], /needs a rule for a claim/],
      [['allow', 'gitlab', '--rule', 'sub'], /claim=pattern/],
      [['allow', 'gitlab', '--rule', 'sub=x', '--team', 'none'], /There is no team/],
      [['allow', 'gitlab', '--rule', 'sub=x', '--user', 'nobody'], /not a member/],
      [['allow', 'gitlab', '--rule', 'sub=x', '--service'], /needs scopes/],
      [['allow', 'nobody', '--rule', 'sub=x'], /no issuer/],
      [['drop', 'gitlab', '00000000-0000-4000-8000-000000000000'], /has no policy/],
      [['allow', 'gitlab', ...tooMany], /at most 2000 patterns with 65536 characters/],
    ];
    for (const [args, message] of wrong) {
      const { code, stderr } = await run(...args);
      expect({ args, code, stderr }).toEqual({ args, code: 1, stderr: expect.stringMatching(message) });
    }
  });
});

test('exchanges are forgotten some minutes after their id token has expired, and tokens a month after they have', async () => {
  const [token] = await query(
    app,
    `insert into api_tokens (kind, organization_id, role, token_hash, name, expires_at, policy_id)
     select 'organization', id, 'member', '\\x01', 'old', now() - interval '31 days', gen_random_uuid() from organizations limit 1 returning id`,
  );
  for (const [key, expires] of [
    ['01', '-11 minutes'],
    // A call may have been admitted just before.
    ['02', '-9 minutes'],
    ['03', '1 minute'],
  ])
    await query(
      app,
      `insert into exchanged_id_tokens (key, request, token_id, expires_at) values (decode($1, 'hex'), '', $2, now() + $3::interval)`,
      [key, token?.['id'], expires],
    );
  const tokens = (await query(app, 'select id from api_tokens')).length;
  const exchanges = createExchangeRepository(app.context.db);
  await exchanges.deleteExpired(10);
  await deleteEndedTokens(app.context, new AbortController().signal);
  const left = await query(
    app,
    "select encode(key, 'hex') as key from exchanged_id_tokens where length(key) = 1 order by 1",
  );
  expect(left).toEqual([{ key: '02' }, { key: '03' }]);
  expect((await query(app, 'select id from api_tokens')).length).toBe(tokens - 1);
});
