import fc from 'fast-check';
import { type ChangeName, rightsChanges } from './changes.ts';
import {
  type DecidingCall,
  deciding,
  type Holder,
  type LateChange,
  lockWait,
  type Step,
  type World,
  worldAbout,
} from './world.ts';

interface Sample {
  /** Random worlds about each late change of each call. */
  readonly each: number;
  /** Random worlds of all kinds. */
  readonly more: number;
  /** Only late changes of these calls. */
  readonly calls?: readonly DecidingCall[];
}

/** Worlds about each late change of each call: an update and a preview to which nothing else happens, and random ones. */
export function sampleWorlds(seed: number, { calls, each, more }: Sample): World[] {
  const names = calls ?? (Object.keys(deciding) as DecidingCall[]);
  const lates = names.flatMap((call) => deciding[call].map((name): LateChange => ({ call, change: name })));
  return [
    ...lates.map((late, at) => plainWorld(late, 'update', at)),
    ...lates.map((late, at) => plainWorld(late, 'preview', at)),
    ...[true, false].map(overtakenPreview),
    ...lates.flatMap((late, at) => fc.sample(worldAbout(late), { numRuns: each, seed: seed + at })),
    ...fc.sample(worldAbout(null), { numRuns: more, seed }),
  ];
}

const nothingElse = { grants: [], defaultPermissions: null, hasWebhook: true, past: [] } as const;

/** A world in which nothing but the late change is unusual. */
function plainWorld({ call, change }: LateChange, kind: 'update' | 'preview', place: number): World {
  const late = (of: DecidingCall): ChangeName | null => (of === call ? change : null);
  const { creator, starter } = callersOf({ call, change }, kind, place);
  const withJournal = change !== 'it is guarded' && (place % 3 > 0 || change === 'it gets entries');
  return {
    ...nothingElse,
    tags: change === 'a call waits' ? lockWait : { env: 'x' },
    steps: [
      { ...creation(kind, creator), late: late('create') },
      { ...start(starter, withJournal), late: late('start') },
      ...saving(withJournal),
      ...(change === 'outputs are watched' ? [{ call: 'events', of: 0 } as const] : []),
      { ...completion, late: late('complete') },
      completion,
      start(starter, withJournal),
    ],
  };
}

/** Who creates the update and who starts it, as far as the change leaves a choice: what is taken away is the member's. */
function callersOf(
  { call, change }: LateChange,
  kind: 'update' | 'preview',
  place: number,
): { creator: Holder; starter: Holder } {
  // The update is not the member's, so that it does not end with the member's rights.
  if (rightsChanges.includes(change))
    return { creator: call === 'start' && kind === 'update' ? 'admin' : 'member', starter: 'member' };
  const creator = (['member', 'brief', 'organization'] as const)[place % 3] as Holder;
  return { creator, starter: place % 2 === 0 ? creator : 'admin' };
}

/** A preview is created before an update and starts after it, from what that has saved. So does another update. */
function overtakenPreview(withJournal: boolean): World {
  const second = { ...start('brief', true), of: 1 };
  return {
    ...nothingElse,
    tags: {},
    steps: [
      creation('preview', 'brief'),
      ...[creation('update', 'member'), start('member', withJournal), ...saving(withJournal), completion],
      ...[second, { ...completion, of: 1 }],
      ...[creation('destroy', 'member'), start('member', withJournal), completion],
    ],
  };
}

type Creation = Extract<Step, { call: 'create' }>;

const creation = (kind: Creation['kind'], as: Holder): Creation => ({
  ...{ call: 'create', as, kind, dryRun: false, isContract: false, message: 'plain', environment: {}, late: null },
});

const start = (as: Holder, withJournal: boolean): Extract<Step, { call: 'start' }> => ({
  ...{ call: 'start', as, of: 0, tags: null, withJournal, isContract: false, stack: 'dev', late: null },
});

const saving = (withJournal: boolean): Step[] =>
  withJournal
    ? [{ call: 'append', of: 0 }]
    : [
        { call: 'save', of: 0 },
        { call: 'verbatim', of: 0 },
      ];

const completion: Extract<Step, { call: 'complete' }> = { call: 'complete', of: 0, status: 'succeeded', late: null };
