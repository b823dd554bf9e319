import type { Command } from 'commander';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import { estimateRetention, isRetentionRule } from '../../shared/state/retention/retention-estimate.ts';
import { ruleKindNames } from '../../shared/updates/rules/rule-kinds.ts';
import { setRule } from '../../shared/updates/rules/set-rule.ts';
import { createUpdateRuleRepository, type RuleRow } from '../../shared/updates/rules/update-rule-repository.ts';
import { describeScope, parseRule, scopeOf } from '../../shared/updates/rules/update-rules.ts';
import { jsonOption } from '../output/outputs.ts';
import type { OpenSession } from './admin-session.ts';
import { changeAction, questionAction, subjects, type Work } from './audited-action.ts';
import { findOrganization, orRefused, refused } from './people-rules.ts';

export interface ScopeOptions {
  readonly organization: string;
  readonly project?: string;
  readonly stack?: string;
  readonly tag?: string;
}

const organizationOption = ['--organization <organization>', 'the organization (required)'] as const;

export function addRuleCommands(admin: Command, open: OpenSession): void {
  const rule = admin.command('rule').description('manage rules for updates');
  withScope(rule.command('set'))
    .description(`set a rule: ${ruleKindNames.join(', ')}`)
    .argument('<kind>')
    .argument('<settings...>', 'name=value, such as seconds=600')
    .option('--note <text>', 'the reason, shown to users')
    .action(changeAction(open, 'update-rule.set', setOne, subjects.ruleScope));
  withScope(rule.command('estimate'))
    .description('count what a rule about retention would delete; changes nothing')
    .argument('<kind>')
    .argument('<settings...>', 'name=value, such as days=30')
    .option(...jsonOption)
    .action(questionAction(open, estimate));
  rule
    .command('list')
    .description('list the rules of an organization')
    .requiredOption(...organizationOption)
    .option(...jsonOption)
    .action(questionAction(open, listRules));
  rule
    .command('delete')
    .description('delete a rule')
    .argument('<rule-id>')
    .requiredOption(...organizationOption)
    .action(changeAction(open, 'update-rule.remove', deleteRule));
}

export function withScope(command: Command): Command {
  return command
    .requiredOption(...organizationOption)
    .option('--project <project>', 'only stacks of this project')
    .option('--stack <project/stack>', 'only this stack')
    .option('--tag <name=value>', 'only stacks with this tag');
}

/** Reads the options of `withScope`. Throws CommandRefusedError. */
export function readScope({ project, stack, tag }: ScopeOptions) {
  const [stackProject, stackName, ...rest] = stack?.split('/') ?? [];
  if (stack !== undefined && (stackName === undefined || rest.length > 0))
    throw refused('--stack must be of the form project/stack');
  if (stack !== undefined && project !== undefined) throw refused('a rule is for a project or for a stack, not both');
  const [tagName, ...tagValue] = tag?.split('=') ?? [];
  if (tagName !== undefined && tagValue.length === 0) throw refused('--tag must be of the form name=value');
  return {
    project: stackProject ?? project ?? null,
    stack: stackName ?? null,
    tag: tagName === undefined ? null : { name: tagName, value: tagValue.join('=') },
  };
}

async function setOne(
  work: Work,
  kind: string,
  settings: readonly string[],
  given: ScopeOptions & { readonly note?: string },
): Promise<void> {
  const organization = await findOrganization(work.identity, given.organization);
  const written = { kind, ...readScope(given), settings: readSettings(settings), note: given.note ?? '' };
  const rule = orRefused(() => parseRule(written));
  await createUpdateRuleRepository(work.tx).lockForChange(organization.id);
  const { id, isRepeated } = await setRule(work.tx, organization.id, rule, null);
  if (isRepeated) work.unchanged();
  work.say(`Set rule ${id}: ${kind} for ${describeScope(rule, organization.name)}.`);
}

async function estimate(work: Work, kind: string, settings: readonly string[], given: ScopeOptions): Promise<void> {
  const organization = await findOrganization(work.identity, given.organization);
  const rule = orRefused(() => parseRule({ kind, ...readScope(given), settings: readSettings(settings) }));
  if (!isRetentionRule(rule)) throw refused(`a rule ${kind} deletes nothing`);
  const { bytes, count, heldCount, otherCount, stackCount, stacks } = await estimateRetention(
    work.tx,
    organization.id,
    rule,
  );
  const what = {
    'keep-versions': 'states of versions',
    'keep-events': 'updates with events',
    'keep-previews': 'previews',
  };
  const found = { kind: rule.kind, count, bytes, stackCount, heldCount, otherCount, stacks };
  work.result('admin rule estimate', found, [
    `${what[rule.kind]}: ${count}, ${bytes} bytes`,
    `stacks: ${stackCount}; under a legal hold: ${heldCount}; decided by a more specific rule: ${otherCount}`,
    ...stacks.map((each) => `${each.project}/${each.stack}  ${each.count}  ${each.bytes} bytes`),
  ]);
}

async function listRules(work: Work, given: { readonly organization: string }): Promise<void> {
  const organization = await findOrganization(work.identity, given.organization);
  const rows = await createUpdateRuleRepository(work.tx).list(organization.id);
  const found = rows.map((row) => {
    const { id, kind, note, setAt, setBy } = row;
    return {
      id,
      kind,
      ...scopeOf(row),
      settings: JSON.parse(row.settings) as Record<string, unknown>,
      note,
      setAt,
      setBy,
    };
  });
  const lines = rows.map((row) => describeRule(row, organization.name));
  work.result('admin rule list', { rules: found }, lines);
}

async function deleteRule(work: Work, id: string, given: { readonly organization: string }): Promise<void> {
  const organization = await findOrganization(work.identity, given.organization);
  const rules = createUpdateRuleRepository(work.tx);
  await rules.lockForChange(organization.id);
  if (!isUuid(id) || !(await rules.remove(organization.id, id)))
    throw refused(`there is no rule ${JSON.stringify(id)} in ${organization.name}`);
  work.say('Deleted.');
}

function describeRule(row: RuleRow, organization: string): string {
  const note = row.note === '' ? '' : `  ${row.note}`;
  const by = row.setBy === null ? '' : ` by ${row.setBy}`;
  return `${row.id}  ${row.kind}  ${describeScope(scopeOf(row), organization)}  ${row.settings}${note}  (set ${row.setAt.toISOString()}${by})`;
}

/** Reads `name=value`; a value is JSON, otherwise text. */
function readSettings(args: readonly string[]): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  for (const word of args) {
    const [name = '', ...value] = word.split('=');
    if (name === '' || value.length === 0) throw refused(`${JSON.stringify(word)} is not of the form name=value`);
    const text = value.join('=');
    try {
      settings[name] = JSON.parse(text);
    } catch {
      settings[name] = text;
    }
  }
  return settings;
}
