import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { anyCodePoint } from '../../../../testkit/any-code-point.ts';
import { decide } from '../../../shared/access/access-decision.ts';
import { isTokenName } from '../../../shared/access/grants.ts';
import { allPermissions } from '../../../shared/access/permissions.ts';
import { rolePermissions } from '../../../shared/access/roles.ts';
import type { TokenScope } from '../../../shared/identity/token-scopes.ts';
import type { PolicyRow } from '../../../shared/identity/trust/issuer-repository.ts';
import { exchangedToken, tokenName } from './exchanged-token.ts';

const Name = fc.option(fc.constantFrom('a', 'b', 'a*'));
const Scope: fc.Arbitrary<TokenScope> = fc.record({
  organization: fc.option(fc.constantFrom('acme', 'beta')),
  project: Name,
  stack: Name,
  permissions: fc.integer({ min: 0, max: 127 }),
});
const Seconds = fc.option(fc.integer({ min: 1, max: 86_400 }));

test('no token exceeds the permissions or lifetime of its policy', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('organization' as const, 'service' as const, 'team' as const, 'personal' as const),
      fc.option(fc.array(Scope, { maxLength: 3 })),
      fc.tuple(Seconds, Seconds, Seconds),
      fc.boolean(),
      fc.record({ project: fc.constantFrom('a', 'ab', 'c'), stack: fc.constantFrom('a', 'ab', 'c') }),
      (tokenKind, scopes, [asked, ofPolicy, ofIssuer], admin, stack) => {
        const policy = {
          ...{
            id: 'p',
            decision: 'allow',
            tokenKind,
            owner: null,
            isAdmin: admin,
            rules: {},
            teamId: 't',
            userId: 'u',
          },
          ...{ scopes: tokenKind === 'service' ? (scopes ?? []) : scopes, maxSeconds: ofPolicy },
        } as PolicyRow;
        const now = new Date(0);
        const held = { organizationId: 'o', name: 'ci', maxSeconds: ofIssuer, now } as never;
        const kind = tokenKind === 'service' ? 'organization' : tokenKind;
        const request = { kind, owner: null, admin: admin && tokenKind === 'organization', lifetimeSeconds: asked };
        const token = exchangedToken({
          asked: { ...request, organization: 'acme', idToken: '', scope: '' },
          ...{ held, policy, hash: Buffer.alloc(0), suffix: '00000000' },
          verified: { claims: { sub: 's' }, identity: '', endsAt: now },
        });
        expect(token.expiresAt?.getTime()).toBe(Math.min(asked ?? 1e9, ofPolicy ?? 1e9, ofIssuer ?? 7200) * 1000);
        if (token.owner.kind === 'organization') expect(token.owner.role).toBe(request.admin ? 'admin' : 'member');
        // A personal token is always limited: its user may have permissions in other organizations.
        if (tokenKind === 'personal')
          expect(token.scopes?.every(({ organization }) => organization !== null)).toBe(true);
        const inside = (given: readonly TokenScope[] | null) =>
          given?.filter(({ organization }) => organization === null || organization === 'acme') ?? null;
        const may = (given: readonly TokenScope[] | null) =>
          decide({ base: rolePermissions.admin, grants: [], scopes: inside(given) as never }, { ...stack, tags: {} });
        expect(may(token.scopes) & ~may(policy.scopes)).toBe(0);
        if (policy.scopes === null && tokenKind === 'personal')
          expect(token.scopes).toEqual([
            { organization: 'acme', project: null, stack: null, permissions: allPermissions },
          ]);
      },
    ),
  );
});

test('its name is valid, whatever the claims are', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: anyCodePoint }),
      fc.oneof(fc.string(), fc.integer(), fc.constant(undefined)),
      (sub, run_id) => {
        const name = tokenName({ sub, run_id }, '0123abcd');
        expect({ name, valid: isTokenName(name) }).toEqual({ name, valid: true });
        expect(name.endsWith(' 0123abcd')).toBe(true);
      },
    ),
  );
});
