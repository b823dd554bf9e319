import { Type } from 'typebox';
import {
  isRuleKind,
  type RuleKindName,
  retentionKinds,
  ruleKindNames,
  ruleKinds,
  slotOf,
} from '../../../shared/updates/rules/rule-kinds.ts';
import { ConfigurationError } from '../configuration-error.ts';
import type { OrganizationApi } from '../organization-api.ts';
import { canonicalText, type Kind, type PresentObject, part, type Spec } from './kind.ts';

const closed = { additionalProperties: false } as const;

interface RuleResponse {
  readonly id: string;
  readonly kind: string;
  readonly project?: string;
  readonly stack?: string;
  readonly tag?: { readonly name: string; readonly value: string };
  readonly settings: object;
  readonly note: string;
}

const fields = {
  project: Type.Optional(Type.String()),
  stack: Type.Optional(Type.String({ description: 'Only with its project, and without a tag' })),
  tag: Type.Optional(Type.Object({ name: Type.String(), value: Type.String() }, closed)),
  note: Type.Optional(Type.String()),
};

function createRuleKind(
  kind: 'UpdateRule' | 'RetentionRule',
  names: readonly RuleKindName[],
  description: string,
): Kind {
  const isOfKind = ({ kind: name }: RuleResponse): boolean => names.some((each) => each === name);
  const self: Kind = {
    kind,
    description,
    spec: Type.Object(
      {
        rule: Type.Enum([...names]),
        ...fields,
        settings: Type.Union(names.map((name) => ruleKinds[name].settings)),
      },
      closed,
    ),
    schemaOf: ({ rule }) =>
      typeof rule === 'string' && isRuleKind(rule) && names.includes(rule)
        ? Type.Object({ rule: Type.Literal(rule), ...fields, settings: ruleKinds[rule].settings }, closed)
        : Type.Object({ rule: Type.Enum([...names]) }),
    complete: ({ note = '', project = null, rule, settings, stack = null, tag = null }) => ({
      rule,
      project,
      stack,
      tag,
      settings,
      note,
    }),
    // A freeze is added to existing freezes, so only an equal one counts as the same.
    keyOf: (_name, { project, rule, settings, stack, tag }) => {
      const slot = slotOf(rule as RuleKindName, settings as object);
      return canonicalText([rule, project, stack, tag, slot ?? settings]);
    },
    fixedFields: ['rule'],
    list: async (api) =>
      (await listRules(api)).filter(isOfKind).map(
        (rule): PresentObject => ({
          object: rule.id,
          name: [rule.kind, rule.project, rule.stack, rule.tag?.name, rule.tag?.value]
            .filter((each) => each !== undefined)
            .join('-'),
          spec: ruleSpec(rule),
        }),
      ),
    read: async (api, object) => {
      const response = await api.find(`update-rules/${part(object)}`);
      return response && { spec: ruleSpec(response.json), tags: { rule: response.etag } };
    },
    create: async (api, name, spec) => {
      // The call would replace an existing rule of this kind for the same stacks.
      const key = self.keyOf(name, spec);
      if ((await self.list(api)).some((each) => self.keyOf(each.name, each.spec) === key))
        throw new ConfigurationError('There is one for these stacks since the plan was made');
      return (await api.post('update-rules', ruleBody(spec))).json.id;
    },
    change: async (api, { object, tags, to }) => {
      await api.put(`update-rules/${part(object)}`, ruleBody(to), tags['rule']);
      return object;
    },
    remove: async (api, object, tags) => void (await api.delete(`update-rules/${part(object)}`, tags['rule'])),
  };
  return self;
}

async function listRules(api: OrganizationApi): Promise<RuleResponse[]> {
  return (await api.get('update-rules')).json.rules;
}

function ruleBody({ rule, ...spec }: Spec) {
  return { kind: rule, ...spec };
}

function ruleSpec({ kind, note, project, settings, stack, tag }: RuleResponse): Spec {
  return { rule: kind, project: project ?? null, stack: stack ?? null, tag: tag ?? null, settings, note };
}

const isRetention = (name: RuleKindName): boolean => retentionKinds.some((each) => each === name);

export const updateRuleKind = createRuleKind(
  'UpdateRule',
  ruleKindNames.filter((name) => !isRetention(name)),
  'A rule for updates: freezes, limits of changes, protected types, concurrency',
);
export const retentionRuleKind = createRuleKind(
  'RetentionRule',
  retentionKinds,
  'How long versions, events and previews are kept',
);
