import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { joinAlternatives, splitAlternatives } from './alternatives.ts';
import { parsePolicies } from './trust-definitions.ts';
import { type Claims, decideTrust, isMatching, type TrustPolicy, type TrustRequest } from './trust-policy.ts';

const rulesMatch = (rules: TrustPolicy['rules'], given: Claims) => isMatching({ decision: 'allow', rules }, given);

const claims: Claims = {
  sub: 'repo:acme/web:ref:refs/heads/main',
  aud: ['a', 'b'],
  run_attempt: 2,
  protected: true,
  nothing: null,
  groups: [{ name: 'red' }, { name: 'blue' }],
  'kubernetes.io': { namespace: 'prod', serviceaccount: { name: 'deployer' } },
  a: { b: { c: 'deep' }, 'b.c': 'flat' },
  'https://example.com/role': 'x',
};

describe('rules', () => {
  test.each<[Record<string, string[]>, boolean]>([
    [{ sub: ['repo:acme/web:*'] }, true],
    [{ sub: ['repo:acme/*:ref:refs/heads/main'] }, true],
    [{ sub: ['repo:acme/web'] }, false],
    [{ sub: ['*main*'], run_attempt: ['2'], protected: ['true'] }, true],
    [{ sub: ['*'], run_attempt: ['3'] }, false],
    [{ sub: ['x', 'repo:*'] }, true],
    [{ aud: ['b'] }, true],
    [{ aud: ['a,b'] }, false],
    [{ 'groups.name': ['blue'] }, true],
    [{ 'groups.name': ['green'] }, false],
    [{ 'kubernetes.io.namespace': ['prod'] }, true],
    [{ 'kubernetes.io.serviceaccount.name': ['dep*'] }, true],
    [{ 'a.b.c': ['flat'] }, true],
    [{ 'a.b.c': ['deep'] }, false],
    [{ 'https://example.com/role': ['x'] }, true],
    [{ missing: ['*'] }, false],
    [{ nothing: ['*'] }, false],
    [{ a: ['*'] }, false],
    [{ 'sub.length': ['*'] }, false],
    [{ constructor: ['*'] }, false],
    [{ '__proto__.x': ['*'] }, false],
    [{ 'aud.0': ['a'] }, false],
    [{ 'kubernetes.io.': ['*'] }, false],
    [{ 'kubernetes.io.names': ['*'] }, false],
    [{ 'kubernetes.': ['*'] }, false],
    [{ '.sub': ['*'] }, false],
    [{ 'a.b..c': ['*'] }, false],
    [{ SUB: ['*'] }, false],
    [{}, true],
  ])('%j: %s', (rules, expected) => expect(rulesMatch(rules, claims)).toBe(expected));

  test('have no other special characters than *', () => {
    for (const pattern of ['repo:acme.web', 'repo.acme/web', 'repo:acme?web', '^repo:acme/web$', 'repo:acme/we[b]'])
      expect(rulesMatch({ sub: [pattern] }, { sub: 'repo:acme/web' })).toBe(false);
  });
});

describe('of a claim that is too long to compare, or has too many values', () => {
  const long = { sub: 'a'.repeat(501), groups: Array.from({ length: 501 }, () => 'a') };
  test.each(['sub', 'groups'])('%s: no policy allows by it, and every denial that names it denies', (name) => {
    const policy = (decision: string): TrustPolicy[] =>
      parsePolicies([{ decision, tokenType: 'organization', rules: { [name]: decision === 'allow' ? 'a*' : 'b' } }]);
    const asked = { kind: 'organization', owner: null, admin: false } as const;
    expect(decideTrust(policy('allow'), long, asked)).toEqual({ deniedBy: null });
    expect(decideTrust(policy('deny'), long, asked)).toEqual({ deniedBy: policy('deny')[0] });
    expect(decideTrust(policy('allow'), { [name]: 'a'.repeat(500) }, asked)).toEqual({ allowedBy: policy('allow')[0] });
  });

  const deep = (names: number): object => (names === 0 ? { x: 1 } : { a: deep(names - 1) });
  const path = 'a.'.repeat(240);
  test.each([
    [
      'patterns with repetitions',
      { x: `*${'a'.repeat(28)}b*` },
      { x: Array.from({ length: 24 }, () => 'a'.repeat(500)) },
    ],
    ['many values', { x: 'b' }, { x: Array.from({ length: 500 }, () => 'a') }],
    ['a long path', { [`${path}x`]: '1', y: '*' }, deep(240)],
    ['many objects', { [`x.${path}`]: 'b' }, { x: Array.from({ length: 3_000 }, () => ({})) }],
  ])('2,000 patterns of one issuer are compared at once: %s', (_, rules, given) => {
    const each = Object.fromEntries(
      Object.entries(rules).map(([name, pattern]) => [name, Array.from({ length: 20 }, () => pattern)]),
    );
    const policies = parsePolicies(
      Array.from({ length: Math.min(100, 100 / Object.keys(each).length) }, () => ({ decision: 'deny', rules: each })),
    );
    const began = process.cpuUsage();
    expect(decideTrust(policies, given as Claims, { kind: 'organization', owner: null, admin: false })).toEqual({
      deniedBy: null,
    });
    expect(process.cpuUsage(began).user).toBeLessThan(1_000_000);
  });
});

const Name = fc.constantFrom('a', 'b', 'c');
const Value = fc.oneof(Name, fc.constantFrom('ab', 'abc', '', '*'), fc.array(Name, { maxLength: 2 }));
const AnyClaims = fc.dictionary(Name, fc.oneof(Value, fc.dictionary(Name, Value, { maxKeys: 2 })), { maxKeys: 3 });
const Rules = fc.dictionary(
  fc.oneof(
    Name,
    fc.tuple(Name, Name).map((names) => names.join('.')),
  ),
  fc.array(fc.constantFrom('a', '*', 'a*', '*b', 'c', 'a*c'), { minLength: 1, maxLength: 2 }),
  { maxKeys: 2 },
);
const kinds = ['organization', 'service', 'team', 'personal'] as const;
const Policy: fc.Arbitrary<TrustPolicy> = fc
  .record({
    decision: fc.constantFrom('allow' as const, 'allow' as const, 'deny' as const),
    kind: fc.constantFrom(...kinds),
    isOfAny: fc.boolean(),
    name: fc.option(fc.constantFrom('red', 'blue')),
    isAdmin: fc.boolean(),
    rules: Rules,
  })
  .map(({ decision, isAdmin, isOfAny, kind, name, rules }) => {
    const isDenial = decision === 'deny';
    const tokenKind = isDenial && isOfAny ? 'any' : kind;
    const hasOwner = tokenKind === 'team' || tokenKind === 'personal';
    return {
      ...{ decision, tokenKind, rules, scopes: null, maxSeconds: null },
      owner: hasOwner ? (name ?? (isDenial ? null : 'red')) : null,
      isAdmin: isAdmin && tokenKind === 'organization' && !isDenial,
    };
  });
const Asked: fc.Arbitrary<TrustRequest> = fc.oneof(
  fc.boolean().map((admin) => ({ kind: 'organization' as const, owner: null, admin })),
  fc
    .tuple(fc.constantFrom('team' as const, 'personal' as const), fc.constantFrom('red', 'blue'))
    .map(([kind, owner]) => ({ kind, owner, admin: false })),
);

/** The same rules, written as simply as possible. */
function holds(rules: TrustPolicy['rules'], given: Claims): boolean {
  return Object.entries(rules).every(([path, patterns]) => {
    const [first = '', second] = path.split('.');
    const found = second === undefined ? given[first] : (given[first] as Claims | undefined)?.[second];
    const values = [found].flat().filter((each): each is string => typeof each === 'string');
    const expressions = patterns.map((pattern) => new RegExp(`^${pattern.replaceAll('*', '.*')}$`, 's'));
    return values.some((value) => expressions.some((expression) => expression.test(value)));
  });
}

test('for any policies, no token is issued that no policy allows or that one denies', () => {
  fc.assert(
    fc.property(fc.array(Policy, { maxLength: 5 }), AnyClaims, Asked, (policies, given, asked) => {
      const result = decideTrust(policies, given, asked);
      const about = policies.filter(({ decision, owner, rules, tokenKind }) => {
        const kind = tokenKind === 'service' ? 'organization' : tokenKind;
        const isOwner = owner === asked.owner || (decision === 'deny' && owner === null);
        return (kind === asked.kind || kind === 'any') && isOwner && holds(rules, given);
      });
      const isDenied = about.some(({ decision }) => decision === 'deny');
      const allowing = about.find(({ decision, isAdmin }) => decision === 'allow' && (isAdmin || !asked.admin));
      if ('allowedBy' in result) expect({ isDenied, by: result.allowedBy }).toEqual({ isDenied: false, by: allowing });
      else expect(isDenied || allowing === undefined).toBe(true);
    }),
    { numRuns: 3_000 },
  );
});

describe('without alternatives', () => {
  test('policies decide the same, and are the same ones when they are written back', () => {
    fc.assert(
      fc.property(fc.array(Policy, { maxLength: 4 }), AnyClaims, Asked, (policies, given, asked) => {
        const split = splitAlternatives(policies) ?? [];
        expect(split.flatMap(({ rules }) => Object.values(rules)).every(({ length }) => length === 1)).toBe(true);
        const outcome = (of: readonly TrustPolicy[]) =>
          Object.entries(decideTrust(of, given, asked)).map(([key, by]) => [key, by && { ...by, rules: null }]);
        expect(outcome(split)).toEqual(outcome(policies));
        expect(joinAlternatives(split, policies)).toEqual(policies);
      }),
      { numRuns: 1_000 },
    );
  });

  test('policies keep what their client does not know, while it changes others', () => {
    const rules = { sub: ['repo:acme/a', 'repo:acme/b'] };
    const scopes = [{ permissions: ['write'], stacks: 'web/*' }];
    const present = parsePolicies([
      { decision: 'allow', tokenType: 'organization', rules, scopes, maxExpiration: 60 },
      { decision: 'allow', tokenType: 'organization', authorizedPermissions: ['admin'], rules },
    ]);
    const [a, b, adminA, adminB] = splitAlternatives(present) as [TrustPolicy, TrustPolicy, TrustPolicy, TrustPolicy];
    const bare = (policy: TrustPolicy): TrustPolicy => ({ ...policy, scopes: null, maxSeconds: null });
    const [other] = parsePolicies([{ decision: 'deny', rules: { sub: 'repo:evil/*' } }]) as [TrustPolicy];
    expect(joinAlternatives([other, bare(a), bare(b), adminB], present)).toEqual([other, present[0], adminB]);
    expect(joinAlternatives([bare(b), adminA, adminB], present)).toEqual([bare(b), present[1]]);
  });

  test('policies are not split into more than an issuer can have', () => {
    const patterns = Array.from({ length: 11 }, (_, at) => `p${at}`);
    const policies = (rules: Record<string, string[]>) =>
      parsePolicies([{ decision: 'allow', tokenType: 'organization', rules }]);
    expect(splitAlternatives(policies({ a: patterns, b: patterns }))).toBeNull();
    expect(splitAlternatives(policies({ a: patterns, b: patterns.slice(2) }))).toHaveLength(99);
  });
});

test('a denial that names no kind refuses every kind, even if another policy allows it', () => {
  const [denial] = parsePolicies([{ decision: 'deny', rules: { sub: 'repo:evil/*' } }]) as [TrustPolicy];
  fc.assert(
    fc.property(fc.array(Policy, { maxLength: 5 }), fc.nat(5), AnyClaims, Asked, (policies, at, given, asked) => {
      const result = decideTrust(policies.toSpliced(at, 0, denial), { ...given, sub: 'repo:evil/web' }, asked);
      expect(result).toEqual({ deniedBy: expect.objectContaining({ decision: 'deny' }) });
    }),
    { numRuns: 1_000 },
  );
});

describe.each(['organization', 'service', 'team', 'personal', 'any', null] as const)('a denial of %s', (denied) => {
  const requests: TrustRequest[] = [
    { kind: 'organization', owner: null, admin: false },
    { kind: 'organization', owner: null, admin: true },
    { kind: 'team', owner: 'red', admin: false },
    { kind: 'personal', owner: 'red', admin: false },
  ];
  const owners = denied === 'team' ? [{}, { teamName: 'red' }, { teamName: 'blue' }] : [{}];
  const all = parsePolicies([
    { decision: 'allow', tokenType: 'organization', authorizedPermissions: ['admin'], rules: { sub: 'x' } },
    { decision: 'allow', tokenType: 'team', teamName: 'red', rules: { sub: 'x' } },
    { decision: 'allow', tokenType: 'personal', userLogin: 'red', rules: { sub: 'x' } },
  ]);
  test.each(requests)('and a request for %j', (asked) => {
    for (const owner of owners) {
      const denials = parsePolicies([{ decision: 'deny', tokenType: denied, ...owner, rules: { sub: 'x' } }]);
      const isKind =
        denied === null || denied === 'any' || (denied === 'service' ? 'organization' : denied) === asked.kind;
      const isDenied = isKind && !('teamName' in owner && owner.teamName !== asked.owner);
      for (const policies of [
        [...all, ...denials],
        [...denials, ...all],
      ])
        expect('deniedBy' in decideTrust(policies, { sub: 'x' }, asked)).toBe(isDenied);
    }
  });
});

describe('a policy is not accepted', () => {
  const sub = { sub: 'repo:acme/*' };
  test.each([
    { decision: 'maybe', tokenType: 'organization', rules: sub },
    { decision: 'allow', tokenType: 'runner', rules: sub },
    { decision: 'allow', tokenType: 'organization', runnerID: 'x', rules: sub },
    { decision: 'allow', tokenType: 'organization', roleID: 'x', rules: sub },
    { decision: 'allow', rules: sub },
    { decision: 'allow', tokenType: 'any', rules: sub },
    { decision: 'deny', tokenType: 'any', teamName: 'red', rules: sub },
    { decision: 'deny', userLogin: 'ada', rules: sub },
    { decision: 'allow', tokenType: 'team', rules: sub },
    { decision: 'allow', tokenType: 'personal', rules: sub },
    { decision: 'allow', tokenType: 'organization', teamName: 'red', rules: sub },
    { decision: 'allow', tokenType: 'team', teamName: 'red', authorizedPermissions: ['admin'], rules: sub },
    { decision: 'allow', tokenType: 'organization', authorizedPermissions: ['write'], rules: sub },
    { decision: 'allow', tokenType: 'service', rules: sub },
    { decision: 'allow', tokenType: 'organization', rules: {} },
    { decision: 'allow', tokenType: 'organization', rules: { aud: 'urn:pulumi:org:acme', sub: '*' } },
    { decision: 'allow', tokenType: 'organization', rules: { aud: 'x', iss: 'y' } },
    { decision: 'allow', tokenType: 'organization', rules: { sub: ['repo:acme/*', '**'] } },
    { decision: 'allow', tokenType: 'organization', rules: { sub: '' } },
    { decision: 'allow', tokenType: 'organization', rules: { sub: [] } },
    { decision: 'allow', tokenType: 'organization', maxExpiration: 100_000, rules: sub },
    { decision: 'allow', tokenType: 'organization', scopes: [{ permissions: ['all'], stacks: '*/*' }], rules: sub },
  ])('%j', (policy) => expect(() => parsePolicies([policy])).toThrow());

  test('beyond 2,000 patterns of an issuer, or 64 KiB of them', () => {
    const policies = (count: number) =>
      Array.from({ length: count }, () => ({
        decision: 'deny',
        rules: { sub: Array.from({ length: 50 }, () => 'a') },
      }));
    expect(parsePolicies(policies(40))).toHaveLength(40);
    expect(() => parsePolicies(policies(41))).toThrow('at most 2000 patterns');
    const long = Array.from({ length: 100 }, () => ({
      decision: 'deny',
      rules: { sub: ['a'.repeat(500), 'b'.repeat(156)] },
    }));
    expect(() => parsePolicies(long)).toThrow('65536 characters');
    expect(parsePolicies(long.slice(1))).toHaveLength(99);
  });
});
