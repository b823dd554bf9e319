import { readFile, writeFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { runAdmin } from '../testkit/admin-command.ts';
import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { pollUntil } from '../testkit/poll.ts';
import { expectNothingToDo, newProject, outputOf, unattended } from '../testkit/scenario.ts';
import { thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

/** The issuer of a CI system, without TLS, as an operator allows it. */
const { privateKey, publicKey } = await generateKeyPair('RS256');
const issuer = http.createServer((request, response) => {
  const discovery = { issuer: issuerUrl(), jwks_uri: `${issuerUrl()}/keys` };
  void exportJWK(publicKey).then((jwk) => {
    const keys = [{ ...jwk, kid: 'one', alg: 'RS256' }];
    response.end(JSON.stringify(request.url === '/keys' ? { keys } : discovery));
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
  const server = fileServer(() => startOwnHoldfast({ HOLDFAST_OUTGOING_ALLOW: issuerUrl() }));

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
      await pollUntil('the log has the refusal', async () => holdfast.log().includes('there are no refresh tokens'), {
        timeoutMs: 60_000,
      });
      expect(holdfast.faults()).toEqual([]);

      expect((await logIn('repo:acme/web', '--oidc-team', 'blue')).exitCode).toBe(0);
      await expectNothingToDo(workspace);
    },
    scenarioTimeoutMs,
  );
});
