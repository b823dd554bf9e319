import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { decideTrust, type TrustPolicy } from '../../src/shared/identity/trust/trust-policy.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (page: string): string => readFileSync(path.join(root, page), 'utf8').replaceAll(/\\\n\s*/g, ' ');

/** The values that follow an option in a command, up to the next option or comment. */
function valuesOf(command: string, option: string): string[] {
  const [, values = ''] = new RegExp(` ${option} ([^#]*?)(?= --| #|$)`).exec(command) ?? [];
  return values
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .map((value) => value.replaceAll("'", ''));
}

/** The policies of the first commands in docs/ci-identity.md. */
function documentedPolicies(): TrustPolicy[] {
  const commands = read('docs/ci-identity.md')
    .split('\n')
    .filter((line) => line.startsWith('holdfast admin issuer allow github'));
  return commands.map((command) => {
    const rules: Record<string, string[]> = {};
    for (const rule of valuesOf(command, '--rule')) {
      const [claim = '', pattern = ''] = rule.split(/=(.*)/);
      rules[claim] = [...(rules[claim] ?? []), pattern];
    }
    const tokenKind = command.includes('--service') ? 'service' : 'organization';
    return { decision: 'allow', tokenKind, owner: null, isAdmin: false, rules, scopes: null, maxSeconds: null };
  });
}

test('the documented policies admit each job of the recipe for GitHub', () => {
  const [, recipe = ''] = /```yaml\n(on: [\s\S]*?)```/.exec(read('docs/ci.md')) ?? [];
  const { jobs } = parse(recipe) as { jobs: Readonly<Record<string, { readonly environment?: string }>> };
  expect(Object.keys(jobs)).toEqual(['preview', 'deploy']);
  const policies = documentedPolicies();
  const [first] = policies;
  expect(policies.length).toBe(2);
  for (const [name, { environment }] of Object.entries(jobs)) {
    // As GitHub names a job in its id token.
    const sub = `repo:acme/web:${environment === undefined ? 'ref:refs/heads/main' : `environment:${environment}`}`;
    const claims = { sub, repository: 'acme/web', event_name: 'push' };
    const decided = decideTrust(policies, claims, { kind: 'organization', owner: null, admin: false });
    expect({ name, decided }).toEqual({ name, decided: { allowedBy: first } });
  }
});

test('tokens and grants of the documentation that preview or update also decrypt the secrets of the stacks', () => {
  const pages = ['docs/administration.md', 'docs/ci-identity.md', 'docs/configuration-as-code.md'].map(read);
  const given = pages.flatMap((page) => [
    ...[...page.matchAll(/--scope [^\n#]*/g)].flatMap(([text]) => valuesOf(` ${text}`, '--scope')),
    ...[...page.matchAll(/grant allow ([a-z ]+) --/g)].map(([, names = '']) => names.replaceAll(' ', ',')),
    ...[...page.matchAll(/permissions: \[([^\]]*)\]/g)].map(([, names = '']) => names.replaceAll(', ', ',')),
  ]);
  const permissions = given.map((each) => each.replace(/:.*/, '').split(','));
  expect(permissions.length).toBeGreaterThan(4);
  expect(permissions.filter((names) => /preview|write/.test(names.join()) && !names.includes('decrypt'))).toEqual([]);
});

test('the documented check of a signature accepts only the release workflow of the named repository', () => {
  const [, written = ''] = /^signer='([^']+)'/m.exec(read('docs/compose.md')) ?? [];
  const signer = new RegExp(written.replace('OWNER/REPOSITORY', 'acme/holdfast'));
  const of = (repository: string, ref: string, file = 'release.yml'): string =>
    `https://github.com/${repository}/.github/workflows/${file}@refs/${ref}`;
  expect(signer.test(of('acme/holdfast', 'tags/v0.1.0'))).toBe(true);
  for (const other of [
    of('evil/holdfast', 'tags/v0.1.0'),
    of('acme/holdfast', 'heads/main'),
    of('acme/holdfast', 'tags/v0.1.0', 'other-release.yml'),
    `https://evil.example/?${of('acme/holdfast', 'tags/v0.1.0')}`,
  ])
    expect({ other, accepted: signer.test(other) }).toEqual({ other, accepted: false });
});
