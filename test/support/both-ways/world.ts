import fc from 'fast-check';
import { type ChangeName, changeNames, rightsChanges } from './changes.ts';

/** Who calls. Every world has these tokens. */
const holders = [
  'admin',
  'member',
  'viewer',
  'team',
  'organization',
  'scoped',
  'brief',
  'outsider',
  'revoked',
] as const;
export type Holder = (typeof holders)[number];

export interface WorldGrant {
  readonly to: 'member' | 'team' | 'organization' | 'scoped';
  readonly effect: 'allow' | 'deny';
  readonly permissions: number;
  readonly stack: string | null;
  readonly tag: readonly [string, string | null] | null;
}

/** Late: the change is made while the call is being answered, just before the statement that decides. */
type Late = { readonly late: ChangeName | null };

export type Step =
  | { readonly change: ChangeName }
  | ({
      readonly call: 'create';
      readonly as: Holder;
      readonly kind: 'update' | 'preview' | 'refresh' | 'destroy';
      readonly dryRun: boolean;
      readonly isContract: boolean;
      readonly message: string;
      readonly environment: object;
    } & Late)
  | ({
      readonly call: 'start';
      readonly as: Holder;
      /** 0: the update that was created last. */
      readonly of: number;
      readonly tags: object | null;
      readonly withJournal: boolean;
      readonly isContract: boolean;
      readonly stack: 'dev' | 'other';
    } & Late)
  | ({ readonly call: 'complete'; readonly of: number; readonly status: string } & Late)
  | { readonly call: 'cancel'; readonly of: number; readonly as: Holder }
  | { readonly call: 'append' | 'save' | 'verbatim' | 'renew' | 'events' | 'read'; readonly of: number };

/** An organization with a stack, and what happens to it. */
export interface World {
  readonly grants: readonly WorldGrant[];
  readonly defaultPermissions: number | null;
  readonly tags: Readonly<Record<string, string>>;
  readonly hasWebhook: boolean;
  /** What was there before. */
  readonly past: readonly ChangeName[];
  readonly steps: readonly Step[];
}

const weighted = <T>(...choices: readonly (readonly [number, T])[]): fc.Arbitrary<T> =>
  fc.oneof(...choices.map(([weight, value]) => ({ weight, arbitrary: fc.constant(value) })));

const seldom = <T>(weight: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
  fc.oneof({ weight: 100 - weight, arbitrary: fc.constant(null) }, { weight, arbitrary });

const holder = weighted<Holder>(
  ...([
    [12, 'admin'],
    [12, 'member'],
    [4, 'brief'],
    [4, 'team'],
    [4, 'organization'],
    [4, 'scoped'],
    [2, 'viewer'],
    [1, 'outsider'],
    [1, 'revoked'],
  ] as const),
);

/** What decides about a call, so that it matters when it changes late. */
export const deciding = {
  create: [
    ...rightsChanges,
    ...([
      'the stack is deleted',
      'the stack is renamed',
      'another update begins',
      'another update has expired',
      'a call waits',
    ] as const),
    ...([
      'the stack is frozen',
      'a rule for a tag is set',
      'a rule for another stack is set',
      'a rule of a later release is set',
    ] as const),
    ...([
      'updates are limited',
      'deletes are limited',
      'a preview is needed',
      'a fault is found',
      'a fault was accepted',
    ] as const),
    ...(['a kind of entries is unknown'] as const),
  ],
  start: [
    ...rightsChanges,
    ...([
      'the stack is deleted',
      'the stack is renamed',
      'the stack is tagged',
      'another update has expired',
      'it is guarded',
    ] as const),
    ...([
      'its lease expires',
      'its lease is lost',
      'its lease is taken away',
      'it waits for long',
      'it is cancelled',
      'entries are in no checkpoint',
    ] as const),
    ...(['a fault is found', 'a kind of entries is unknown'] as const),
  ],
  complete: [
    ...([
      'the token is revoked',
      'the member may not write',
      'the stack is deleted',
      'outputs are watched',
      'it is cancelled',
    ] as const),
    ...(['its lease expires', 'its lease is lost', 'it is taken over', 'it gets entries', 'secrets are read'] as const),
  ],
} as const satisfies Record<string, readonly ChangeName[]>;
export type DecidingCall = keyof typeof deciding;

/** A late change of one kind of call; others have none. */
export interface LateChange {
  readonly call: DecidingCall;
  readonly change: ChangeName;
}

const change = fc.constantFrom(...changeNames);

const environments = [
  {},
  { 'ci.system': 'GitHub', 'ci.build.id': '7', 'git.head': 'a'.repeat(40) },
  { 'pulumi.version': 'v3.255.0', odd: '\u0000 "\\ \ud800' },
];

/** What the late change makes matter. */
interface Bias {
  readonly late: LateChange | null;
  readonly as: Holder;
}

const lateOf = (call: DecidingCall, { late }: Bias): fc.Arbitrary<ChangeName | null> =>
  late?.call === call ? weighted([9, late.change], [1, null]) : fc.constant(null);

const creation = (bias: Bias): fc.Arbitrary<Step> =>
  fc.record({
    call: fc.constant('create' as const),
    as: fc.constant(bias.as),
    kind: weighted<'update' | 'preview' | 'refresh' | 'destroy'>(
      [6, 'update'],
      [3, 'preview'],
      [1, 'refresh'],
      [1, 'destroy'],
    ),
    dryRun: weighted([5, false], [1, true]),
    isContract: weighted([5, false], [1, true]),
    message: weighted([6, ''], [3, 'Add "a" \\ ü'], [1, 'break-glass: fire']),
    environment: fc.constantFrom(...environments),
    late: lateOf('create', bias),
  });

const start = (bias: Bias): fc.Arbitrary<Step> =>
  fc.record({
    call: fc.constant('start' as const),
    as: fc.oneof({ weight: 8, arbitrary: fc.constant(bias.as) }, { weight: 1, arbitrary: holder }),
    of: weighted([12, 0], [1, 1]),
    tags: weighted<object | null>([5, null], [3, { env: 'x' }], [1, { env: 'y' }], [1, {}]),
    withJournal: weighted([3, true], [2, false]),
    isContract: weighted([5, false], [1, true]),
    stack: weighted<'dev' | 'other'>([19, 'dev'], [1, 'other']),
    late: lateOf('start', bias),
  });

const writing: fc.Arbitrary<Step> = fc.record({
  call: fc.constantFrom(
    'append' as const,
    'save' as const,
    'verbatim' as const,
    'renew' as const,
    'events' as const,
    'read' as const,
  ),
  of: fc.constant(0),
});

const completion = (bias: Bias): fc.Arbitrary<Step> =>
  fc.record({
    call: fc.constant('complete' as const),
    of: weighted([15, 0], [1, 1]),
    status: weighted([4, 'succeeded'], [1, 'failed'], [1, 'cancelled']),
    late: lateOf('complete', bias),
  });

const optional = (weight: number, step: fc.Arbitrary<Step>): fc.Arbitrary<Step[]> =>
  seldom(weight, step).map((made) => (made === null ? [] : [made]));
const changing: fc.Arbitrary<Step> = change.map((name) => ({ change: name }));

/** The life of one update, with what comes between its calls. Some calls are repeated, as after a lost response. */
const life = (bias: Bias, disturbance: number): fc.Arbitrary<Step[]> =>
  fc
    .tuple(
      optional(disturbance, changing),
      creation(bias).map((step) => [step]),
      optional(8, creation(bias)),
      optional(disturbance, changing),
      start(bias).map((step) => [step]),
      optional(10, start(bias)),
      fc.array(writing, { maxLength: 2 }),
      // Whether outputs were removed, or entries are left, is asked at the end.
      bias.late?.change === 'outputs are watched'
        ? fc.constant([{ call: 'events' as const, of: 0 }])
        : optional(disturbance, changing),
      optional(8, fc.record({ call: fc.constant('cancel' as const), of: fc.constant(0), as: fc.constant(bias.as) })),
      completion(bias).map((step) => [step]),
      optional(20, completion(bias)),
      optional(10, start(bias)),
    )
    .map((parts) => parts.flat());

const grant: fc.Arbitrary<WorldGrant> = fc.record({
  to: fc.constantFrom('member' as const, 'team' as const, 'organization' as const, 'scoped' as const),
  effect: fc.constantFrom('allow' as const, 'deny' as const),
  permissions: fc.constantFrom(1, 3, 4, 7, 12, 32, 63),
  stack: fc.constantFrom(null, 'd*', 'dev', 'other'),
  tag: fc.constantFrom(null, null, ['env', 'x'] as const, ['env', null] as const),
});

/** Calls of the stack wait for a moment. */
export const lockWait = { 'lock-wait': '1s' };

/** A world in which the change is made late, if there is one. */
export function worldAbout(late: LateChange | null): fc.Arbitrary<World> {
  const holders =
    late && rightsChanges.includes(late.change) ? fc.constantFrom<Holder>('member', 'brief', 'scoped') : holder;
  return fc.record({
    grants: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: late ? 1 : 2, arbitrary: fc.array(grant, { maxLength: 3 }) },
    ),
    defaultPermissions: weighted<number | null>([late ? 20 : 8, null], [1, 3], [1, 1]),
    tags: weighted<Record<string, string>>([10, {}], [10, { env: 'x' }], [1, lockWait]),
    hasWebhook: fc.boolean(),
    past: seldom(late ? 8 : 25, change).map((name) => (name === null ? [] : [name])),
    steps: holders
      .chain((as) => life({ late, as }, late ? 5 : 20))
      .chain((first) =>
        late ? fc.constant(first) : holder.chain((as) => life({ late, as }, 20)).map((second) => [...first, ...second]),
      ),
  });
}
