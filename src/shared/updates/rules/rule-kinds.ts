import { type Static, type TSchema, Type } from 'typebox';
import { checkFreeze, FreezeWindow } from './freeze-windows.ts';

/** What a kind of rules is. To add a kind, add its entry to `ruleKinds`; enforce it where it matters. */
interface RuleKind {
  /** What the rule says, as it is written in requests and commands, stored, and read again. */
  readonly settings: TSchema;
  /**
   * Tells apart rules that may be there at once for the same stacks. Without it there is one, which the next one replaces. Return
   * null to add each rule to those that are there.
   */
  readonly slot?: (settings: never) => string | null;
  /** Throws InvalidRequestError for what the schema cannot say. */
  readonly check?: (settings: never) => void;
}

const closed = { additionalProperties: false } as const;

/** What becomes of updates that send no journal, so that the rule cannot hold for them: they are allowed, which is the default, or refused. */
const withoutJournal = Type.Optional(Type.Union([Type.Literal('allow'), Type.Literal('refuse')]));

/** Who may approve what the rule stops: people, which is the default, or also tokens of teams, organizations and services. */
const approvers = Type.Optional(Type.Union([Type.Literal('people'), Type.Literal('tokens')]));

/** Every kind of rules, with its settings. Names are stable: they are stored. */
export const ruleKinds = {
  /** How long an update waits for its stack. */
  'lock-wait': {
    settings: Type.Object({ seconds: Type.Integer({ minimum: 0, maximum: 86_400 }) }, closed),
  },
  /** After which time in the queue of its stack webhooks are told that an update waits. */
  'wait-alert': {
    settings: Type.Object({ seconds: Type.Integer({ minimum: 1, maximum: 86_400 }) }, closed),
  },
  /** No updates. */
  freeze: {
    settings: Type.Object(
      {
        /** What becomes of an update: refused, which is the default, or it waits in line. */
        mode: Type.Optional(Type.Union([Type.Literal('refuse'), Type.Literal('wait')])),
        /** The end; without it, the freeze ends when the rule is deleted. */
        until: Type.Optional(Type.String({ format: 'date-time' })),
        /** When it is in force; without them, always. */
        windows: Type.Optional(Type.Array(FreezeWindow, { minItems: 1, maxItems: 20 })),
      },
      closed,
    ),
    slot: () => null,
    check: checkFreeze,
  },
  /** Most updates at once. */
  concurrency: {
    settings: Type.Object(
      {
        most: Type.Integer({ minimum: 1, maximum: 100_000 }),
        /** Counted together, which is the default, or for each user or project. */
        per: Type.Optional(Type.Union([Type.Literal('all'), Type.Literal('user'), Type.Literal('project')])),
      },
      closed,
    ),
    slot: ({ per = 'all' }: { per?: string }) => per,
  },
  /** Waiting updates of an older commit make way for those of a newer one. */
  supersede: {
    settings: Type.Object(
      { by: Type.Union([Type.Literal('branch'), Type.Literal('pull-request'), Type.Literal('nothing')]) },
      closed,
    ),
  },
  /** Other stacks read the outputs of this one: who takes them away is warned, or refused. */
  consumers: {
    settings: Type.Object({ mode: Type.Union([Type.Literal('warn'), Type.Literal('refuse')]) }, closed),
  },
  /** Most deletes and replacements in one update; more need an approval. */
  'change-limit': {
    settings: Type.Object(
      {
        changes: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
        /** Of the resources in the state before the update. */
        percent: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
        approvers,
        withoutJournal,
      },
      { ...closed, minProperties: 1 },
    ),
  },
  /** Types of resources, with `*` for any characters, that no update deletes or replaces without an approval. */
  'protected-types': {
    settings: Type.Object(
      {
        types: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1, maxItems: 100 }),
        approvers,
        withoutJournal,
      },
      closed,
    ),
  },
  /** Updates do what a preview of the same commit has said, of the same version of the stack. */
  'require-preview': {
    settings: Type.Object(
      {
        /** What becomes of an update without one: its user is told, or it is refused. */
        mode: Type.Union([Type.Literal('warn'), Type.Literal('refuse'), Type.Literal('off')]),
        /** Whether the preview counts that `up` and `destroy` begin with, which is the default, or only one of a run of its own. */
        ownPreview: Type.Optional(Type.Union([Type.Literal('counts'), Type.Literal('ignored')])),
        withoutJournal,
      },
      closed,
    ),
  },
} as const satisfies Record<string, RuleKind>;

export type RuleKindName = keyof typeof ruleKinds;
export type RuleSettings<Kind extends RuleKindName> = Static<(typeof ruleKinds)[Kind]['settings']>;

export const ruleKindNames = Object.keys(ruleKinds) as RuleKindName[];

export function isRuleKind(name: string): name is RuleKindName {
  return Object.hasOwn(ruleKinds, name);
}

/** The slot of a rule; null if each rule is added to the others. */
export function slotOf(kind: RuleKindName, settings: object): string | null {
  const { slot }: RuleKind = ruleKinds[kind];
  return slot ? slot(settings as never) : '';
}

/** Throws InvalidRequestError for what the schema of the settings cannot say. */
export function checkSettings(kind: RuleKindName, settings: object): void {
  const { check }: RuleKind = ruleKinds[kind];
  check?.(settings as never);
}
