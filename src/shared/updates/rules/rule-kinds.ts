import { type Static, type TSchema, Type } from 'typebox';
import { checkFreeze, FreezeWindow } from './freeze-windows.ts';

/** To add a kind, add its entry to `ruleKinds` and enforce the rule where it applies. */
interface RuleKind {
  /** The settings as written in requests and commands, and as stored. */
  readonly settings: TSchema;
  /**
   * Distinguishes rules that may coexist for the same stacks. Without it, the next rule replaces the only one. Return null to add each rule
   * to the others.
   */
  readonly slot?: (settings: never) => string | null;
  /** Throws InvalidRequestError for what the schema cannot express. */
  readonly check?: (settings: never) => void;
}

const closed = { additionalProperties: false } as const;

/** Whether updates without a journal, to which the rule cannot be applied, are allowed (the default). */
const withoutJournal = Type.Optional(Type.Union([Type.Literal('allow'), Type.Literal('refuse')]));

/** Only users (the default), or also tokens of teams, organizations and services. */
const approvers = Type.Optional(Type.Union([Type.Literal('people'), Type.Literal('tokens')]));

const Days = Type.Integer({ minimum: 1, maximum: 36_500 });

/** Names are stable, because they are stored. */
export const ruleKinds = {
  /** The time for which an update waits for its stack. */
  'lock-wait': {
    settings: Type.Object({ seconds: Type.Integer({ minimum: 0, maximum: 86_400 }) }, closed),
  },
  /** The wait in a stack's queue after which webhooks are notified. */
  'wait-alert': {
    settings: Type.Object({ seconds: Type.Integer({ minimum: 1, maximum: 86_400 }) }, closed),
  },
  freeze: {
    settings: Type.Object(
      {
        /** The default is `refuse`. */
        mode: Type.Optional(Type.Union([Type.Literal('refuse'), Type.Literal('wait')])),
        /** Without it, the freeze ends when the rule is deleted. */
        until: Type.Optional(Type.String({ format: 'date-time' })),
        /** Without them, the freeze is always in force. */
        windows: Type.Optional(Type.Array(FreezeWindow, { minItems: 1, maxItems: 20 })),
      },
      closed,
    ),
    slot: () => null,
    check: checkFreeze,
  },
  /** Maximum concurrent updates. */
  concurrency: {
    settings: Type.Object(
      {
        most: Type.Integer({ minimum: 1, maximum: 100_000 }),
        /** `all` (the default) counts updates together. */
        per: Type.Optional(Type.Union([Type.Literal('all'), Type.Literal('user'), Type.Literal('project')])),
      },
      closed,
    ),
    slot: ({ per = 'all' }: { per?: string }) => per,
  },
  /** Waiting updates of a newer commit supersede updates of an older one. */
  supersede: {
    settings: Type.Object(
      { by: Type.Union([Type.Literal('branch'), Type.Literal('pull-request'), Type.Literal('nothing')]) },
      closed,
    ),
  },
  /** An update that removes outputs which other stacks read gets a warning or is refused. */
  consumers: {
    settings: Type.Object({ mode: Type.Union([Type.Literal('warn'), Type.Literal('refuse')]) }, closed),
  },
  /** More deletes and replacements in one update need an approval. */
  'change-limit': {
    settings: Type.Object(
      {
        changes: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
        /** Percentage of the resources in the state before the update. */
        percent: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
        approvers,
        withoutJournal,
      },
      { ...closed, minProperties: 1 },
    ),
  },
  /** Resources of these types are not deleted or replaced without an approval. `*` matches any characters. */
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
  /** An update may do only what a preview of the same commit and the same stack version announced. */
  'require-preview': {
    settings: Type.Object(
      {
        mode: Type.Union([Type.Literal('warn'), Type.Literal('refuse'), Type.Literal('off')]),
        /** Whether the preview at the beginning of `up` and `destroy` counts (the default). */
        ownPreview: Type.Optional(Type.Union([Type.Literal('counts'), Type.Literal('ignored')])),
        withoutJournal,
      },
      closed,
    ),
  },
  /** A version keeps its state if at least one of the settings keeps it. */
  'keep-versions': {
    settings: Type.Object(
      {
        newest: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
        /** All versions of the last days. */
        days: Type.Optional(Days),
        /** The last version of each day, for this many days. */
        daily: Type.Optional(Days),
        /** The last version of each month, for this many months. */
        monthly: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_200 })),
      },
      { ...closed, minProperties: 1 },
    ),
  },
  'keep-events': { settings: Type.Object({ days: Days }, closed) },
  'keep-previews': { settings: Type.Object({ days: Days }, closed) },
} as const satisfies Record<string, RuleKind>;

/** A worker deletes data by these rules. */
export const retentionKinds = ['keep-versions', 'keep-events', 'keep-previews'] as const;
export type RetentionKind = (typeof retentionKinds)[number];

export const stoppingKinds = ['change-limit', 'protected-types', 'require-preview'] as const;

export type RuleKindName = keyof typeof ruleKinds;
export type RuleSettings<Kind extends RuleKindName> = Static<(typeof ruleKinds)[Kind]['settings']>;

export const ruleKindNames = Object.keys(ruleKinds) as RuleKindName[];

export function isRuleKind(name: string): name is RuleKindName {
  return Object.hasOwn(ruleKinds, name);
}

export function slotOf(kind: RuleKindName, settings: object): string | null {
  const { slot }: RuleKind = ruleKinds[kind];
  return slot ? slot(settings as never) : '';
}

export function checkSettings(kind: RuleKindName, settings: object): void {
  const { check }: RuleKind = ruleKinds[kind];
  check?.(settings as never);
}
