import { readFile, writeFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { parse, parseAllDocuments } from 'yaml';
import { runAdmin } from '../testkit/admin-command.ts';
import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { expectNothingToDo, newProject, outputOf, unattended } from '../testkit/scenario.ts';
import { thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';

/** The issuer of a CI system, without TLS, as an operator allows it. */
const { privateKey, publicKey } = await generateKeyPair('RS256');
const issuer = http.createServer((request, response) => {
  const discovery = { issuer: issuerUrl(), jwks_uri: `${issuerUrl()}/keys` };
  void exportJWK(publicKey).then((jwk) => {
    const { pathname, searchParams } = new URL(request.url ?? '', issuerUrl());
    // Where a runner of GitHub asks for the token of its run.
    if (pathname === '/id-token')
      return idToken((searchParams.get('audience') ?? '').replace('urn:pulumi:org:', ''), 'repo:ci/web').then(
        (value) =>
          request.headers.authorization === 'bearer runner'
            ? response.end(JSON.stringify({ value }))
            : response.writeHead(401).end(),
      );
    const keys = [{ ...jwk, kid: 'one', alg: 'RS256' }];
    return response.end(JSON.stringify(request.url === '/keys' ? { keys } : discovery));
  });
});
await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve));
afterAll(() => void issuer.close());

function issuerUrl(): string {
  return `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`;
}

function idToken(organization: string, sub: string): Promise<string> {
  return new SignJWT({ run_id: '77' })
    .setProtectedHeader({ alg: 'RS256', kid: 'one', typ: 'JWT' })
    .setIssuer(issuerUrl())
    .setAudience(`urn:pulumi:org:${organization}`)
    .setSubject(sub)
    .setJti(Math.random().toString(36).slice(2))
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(privateKey);
}

const admin = (server: OwnHoldfastServer, ...args: string[]): Promise<string> =>
  runAdmin(server, ...args, '--organization', server.organization);

await suite('a CI run without a stored token', { ownServer: true }, () => {
  const server = fileServer(() => startOwnHoldfast({ HOLDFAST_OUTGOING_ALLOW: issuerUrl() }, { prepared: true }));

  test(
    'logs in with its id token, updates, and has to log in again when the token has ended',
    async () => {
      const holdfast = await server();
      const { organization, url } = holdfast;
      await admin(holdfast, 'issuer', 'add', 'ci', '--url', issuerUrl());
      await admin(holdfast, 'team', 'create', 'blue');
      await admin(holdfast, 'grant', 'allow', 'write', 'decrypt', '--team', 'blue');
      const [, policy = ''] =
        /policy (\S+)\./.exec(await admin(holdfast, 'issuer', 'allow', 'ci', '--rule', 'sub=repo:acme/*')) ?? [];
      await admin(holdfast, 'issuer', 'allow', 'ci', '--rule', 'sub=repo:acme/*', '--team', 'blue');
      await using workspace = await holdfast.workspace({ env: { PULUMI_ACCESS_TOKEN: '' } });
      const logIn = async (sub = 'repo:acme/web', ...more: string[]) =>
        workspace.run(['login', url, '--oidc-token', await idToken(organization, sub), ...more, '--non-interactive']);

      const stranger = await logIn('repo:other/web');
      expect(stranger.exitCode).not.toBe(0);
      expect(outputOf(stranger)).toMatch(/OIDC token exchange failed: \{"error":"invalid_grant"/);

      expect((await logIn()).exitCode).toBe(0);
      expect((await workspace.runOk(['whoami', '--verbose'])).stdout).toMatch(/organization:ci repo:acme\.web 77/);
      const project = newProject('oidc');
      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1' } } }));
      await workspace.runOk(['stack', 'init', `${organization}/${project}/dev`, '--non-interactive']);
      await workspace.runOk(['up', ...unattended]);
      await expectNothingToDo(workspace);

      // The CLI keeps no refresh token from an id token. One that is there is of no use: the CLI asks, and then for a new login.
      await admin(holdfast, 'issuer', 'drop', 'ci', policy);
      const file = join(workspace.dir, 'pulumi-home', 'credentials.json');
      const credentials = JSON.parse(await readFile(file, 'utf8'));
      const account = credentials.accounts[url];
      expect(account.refreshToken ?? '').toBe('');
      const ended = await workspace.run(['up', ...unattended]);
      expect(ended.exitCode).not.toBe(0);
      expect(outputOf(ended)).toMatch(/pulumi login/);
      account.refreshToken = 'made-up';
      account.lastValidatedAt = '2020-01-01T00:00:00Z';
      await writeFile(file, JSON.stringify(credentials));
      const refreshed = await workspace.run(['up', ...unattended]);
      expect(refreshed.exitCode).not.toBe(0);
      expect(outputOf(refreshed)).toMatch(/must be set for login|pulumi login/);
      // The CLI ends before the output of the server has been read.
      await until(async () => holdfast.log().includes('there are no refresh tokens'), 'the log has the refusal');
      expect(holdfast.faults()).toEqual([]);

      expect((await logIn('repo:acme/web', '--oidc-team', 'blue')).exitCode).toBe(0);
      await expectNothingToDo(workspace);
    },
    scenarioTimeoutMs,
  );

  test(
    'runs the steps that the repository has for GitHub and GitLab: login, queue, update, links and what stopped it',
    async () => {
      const holdfast = await server();
      const { organization, url } = holdfast;
      // The first test may have added it already, as `ci`.
      await admin(holdfast, 'issuer', 'add', 'runs', '--url', issuerUrl()).catch(() => undefined);
      await admin(holdfast, 'issuer', 'allow', 'ci', '--rule', 'sub=repo:ci/*').catch(() =>
        admin(holdfast, 'issuer', 'allow', 'runs', '--rule', 'sub=repo:ci/*'),
      );
      await using workspace = await holdfast.workspace({ env: { PULUMI_ACCESS_TOKEN: '' } });
      const project = newProject('steps');
      const stack = `${organization}/${project}/dev`;
      const summary = join(workspace.dir, 'summary.md');
      const bash = (script: string, env: Record<string, string>) =>
        workspace.run(['--noprofile', '--norc', '-eo', 'pipefail', '-c', script], { program: '/bin/bash', env });
      const { inputs, runs } = parse(await readFile('deploy/ci/github/action.yml', 'utf8')) as GitHubAction;
      const step = async (name: string, given: Record<string, string>) => {
        const { env, run } = runs.steps.find((each) => each.name === name) as GitHubAction['runs']['steps'][number];
        const values = {
          ...Object.fromEntries(Object.entries(inputs).map(([input, of]) => [input, of.default])),
          ...given,
        };
        const filled = Object.entries(env).map(([variable, text]) => [
          variable,
          text.replace(/\$\{\{ inputs\.([\w-]+) \}\}/, (_, input: string) => values[input] ?? ''),
        ]);
        return bash(run, {
          ...{ GITHUB_STEP_SUMMARY: summary, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'runner' },
          ACTIONS_ID_TOKEN_REQUEST_URL: `${issuerUrl()}/id-token?api-version=2.0`,
          ...Object.fromEntries(filled),
        });
      };
      const program = (things: Record<string, { value: string }>) =>
        workspace.writeProgram(thingProgram({ project, things }));
      const three = { a: { value: '1' }, b: { value: '1' }, c: { value: '1' } };
      await program(three);
      const loggedIn = await step('Log in', { url, organization });
      expect([loggedIn.exitCode, loggedIn.stdout]).toEqual([0, expect.stringMatching(/^::add-mask::ey/)]);
      await workspace.runOk(['stack', 'init', stack, '--non-interactive']);
      const run = (more: object) =>
        step('Run', { url, organization, stack, command: 'up --yes --skip-preview', ...more });
      const updated = await run({ 'lock-wait': '30m' });
      expect([updated.exitCode, outputOf(updated)]).toEqual([0, expect.stringContaining('4 created')]);
      expect((await workspace.runOk(['stack', 'tag', 'get', 'lock-wait', '--stack', stack])).stdout.trim()).toBe('30m');
      expect(await readFile(summary, 'utf8')).toMatch(`### pulumi up: [${stack}](${url}/${stack})\nSucceeded.\n`);

      await admin(holdfast, 'rule', 'set', 'change-limit', 'changes=1', '--project', project);
      await writeFile(summary, '');
      await program({});
      const stopped = await run({});
      const shown = await readFile(summary, 'utf8');
      expect(stopped.exitCode).not.toBe(0);
      expect(shown).toContain('Failed with exit code');
      expect(shown).toMatch(/^> .*deletes or replaces at most 1/m);
      expect(shown.match(/^```$/gm)).toHaveLength(2);

      const [, component] = parseAllDocuments(await readFile('deploy/ci/gitlab/pulumi.yml', 'utf8')).map(
        (each) => each.toJS() as GitLabComponent,
      );
      const job = Object.values(component ?? {})[0] as GitLabComponent[string];
      const given: Record<string, string> = { url, organization, stack, command: 'preview', 'lock-wait': '20m' };
      const env = Object.entries(job.variables).map(([variable, text]) => [
        variable,
        (typeof text === 'string' ? text : text.value).replace(
          /\$\[\[ inputs\.([\w-]+) \]\]/,
          (_, input: string) => given[input] ?? '',
        ),
      ]);
      await program(three);
      const previewed = await bash(job.script.join('\n'), {
        ...Object.fromEntries(env),
        PULUMI_ID_TOKEN: await idToken(organization, 'repo:ci/web'),
      });
      expect([previewed.exitCode, outputOf(previewed)]).toEqual([0, expect.stringContaining('Previewing')]);
      expect(JSON.parse(await readFile(join(workspace.programDir, 'holdfast-links.json'), 'utf8'))).toEqual({
        links: [{ external_link: { label: stack, url: `${url}/${stack}` } }],
      });
      expect((await workspace.runOk(['stack', 'tag', 'get', 'lock-wait', '--stack', stack])).stdout.trim()).toBe('20m');
    },
    scenarioTimeoutMs,
  );
});

interface GitHubAction {
  readonly inputs: Record<string, { readonly default?: string }>;
  readonly runs: {
    readonly steps: readonly { readonly name: string; readonly run: string; readonly env: Record<string, string> }[];
  };
}

type GitLabComponent = Record<
  string,
  { readonly variables: Record<string, string | { readonly value: string }>; readonly script: readonly string[] }
>;
