import fc from 'fast-check';
import { type ChangeName, changeNames, rightsChanges } from './changes.ts';

/** Who calls. Every world has these tokens. */
const holders = ['admin', 'member', 'viewer', 'team', 'organization', 'scoped', 'brief', 'outsider', 'revoked'] as const;
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

const change = fc.constantFrom(...changeNames);
const late = (...favourites: readonly ChangeName[]): fc.Arbitrary<ChangeName | null> =>
  seldom(35, fc.oneof({ weight: 1, arbitrary: change }, { weight: 2, arbitrary: fc.constantFrom(...favourites, ...rightsChanges) }));

const environments = [
  {},
  { 'ci.system': 'GitHub', 'ci.build.id': '7', 'git.head': 'a'.repeat(40) },
  { 'pulumi.version': 'v3.255.0', odd: '\u0000 "\\ \ud800' },
];

const creation = (as: Holder): fc.Arbitrary<Step> =>
  fc.record({
    call: fc.constant('create' as const),
    as: fc.constant(as),
    kind: weighted<'update' | 'preview' | 'refresh' | 'destroy'>([6, 'update'], [3, 'preview'], [1, 'refresh'], [1, 'destroy']),
    dryRun: weighted([5, false], [1, true]),
    isContract: weighted([5, false], [1, true]),
    message: weighted([6, ''], [3, 'Add "a" \\ ü'], [1, 'break-glass: fire']),
    environment: fc.constantFrom(...environments),
    late: late('another update begins', 'a call waits', 'a rule is set', 'a fault is found', 'the stack is renamed', 'the stack is deleted'),
  });

const start = (as: Holder): fc.Arbitrary<Step> =>
  fc.record({
    call: fc.constant('start' as const),
    as: fc.oneof({ weight: 6, arbitrary: fc.constant(as) }, { weight: 1, arbitrary: holder }),
    of: weighted([12, 0], [1, 1], [1, 2]),
    tags: weighted<object | null>([5, null], [3, { env: 'x' }], [1, { env: 'y' }], [1, {}]),
    withJournal: weighted([3, true], [2, false]),
    isContract: weighted([5, false], [1, true]),
    stack: weighted<'dev' | 'other'>([19, 'dev'], [1, 'other']),
    late: late(
      ...(['its lease expires', 'its lease is lost', 'it waits for long', 'it is guarded', 'entries are in no checkpoint'] as const),
      ...(['a fault is found', 'the stack is deleted', 'it is cancelled', 'another update has expired', 'the stack is renamed'] as const),
    ),
  });

const writing: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    call: fc.constantFrom('append' as const, 'save' as const, 'verbatim' as const, 'renew' as const, 'events' as const, 'read' as const),
    of: weighted([9, 0], [1, 1]),
  }),
);

const completion = fc.record({
  call: fc.constant('complete' as const),
  of: weighted([15, 0], [1, 1]),
  status: weighted([4, 'succeeded'], [1, 'failed'], [1, 'cancelled']),
  late: late(
    ...(['its lease expires', 'its lease is lost', 'it is taken over', 'it gets entries', 'secrets are read', 'outputs are watched'] as const),
    ...(['the stack is deleted', 'it is cancelled'] as const),
  ),
});

const optional = (weight: number, step: fc.Arbitrary<Step>): fc.Arbitrary<Step[]> =>
  seldom(weight, step).map((made) => (made === null ? [] : [made]));
const changing: fc.Arbitrary<Step> = change.map((name) => ({ change: name }));

/** The life of one update, with what comes between its calls. Some calls are repeated, as after a lost response. */
const life: fc.Arbitrary<Step[]> = holder.chain((as) =>
  fc
    .tuple(
      optional(15, changing),
      creation(as).map((step) => [step]),
      optional(8, creation(as)),
      optional(20, changing),
      start(as).map((step) => [step]),
      optional(10, start(as)),
      fc.array(writing, { maxLength: 3 }),
      optional(15, changing),
      optional(8, fc.record({ call: fc.constant('cancel' as const), of: fc.constant(0), as: fc.constant(as) })),
      completion.map((step) => [step as Step]),
      optional(20, completion),
    )
    .map((parts) => parts.flat()),
);

const grant: fc.Arbitrary<WorldGrant> = fc.record({
  to: fc.constantFrom('member' as const, 'team' as const, 'organization' as const, 'scoped' as const),
  effect: fc.constantFrom('allow' as const, 'deny' as const),
  permissions: fc.constantFrom(1, 3, 4, 7, 12, 32, 63),
  stack: fc.constantFrom(null, 'd*', 'dev', 'other'),
  tag: fc.constantFrom(null, null, ['env', 'x'] as const, ['env', null] as const),
});

export const world: fc.Arbitrary<World> = fc.record({
  grants: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 2, arbitrary: fc.array(grant, { maxLength: 3 }) }),
  defaultPermissions: weighted<number | null>([8, null], [1, 3], [1, 1]),
  tags: weighted<Record<string, string>>([5, {}], [4, { env: 'x' }], [1, { 'lock-wait': '1s' }]),
  hasWebhook: fc.boolean(),
  past: seldom(25, change).map((name) => (name === null ? [] : [name])),
  steps: fc.array(life, { minLength: 1, maxLength: 2 }).map((lives) => lives.flat()),
});
