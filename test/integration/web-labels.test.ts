import { expect, test } from '@jest/globals';
import { SignIn } from '../../src/shared/audit/audit-event.ts';
import { csvLine } from '../../src/shared/platform/csv/csv-line.ts';
import { leaseLosses } from '../../src/shared/updates/lease-loss.ts';
import { refusalReasons } from '../../src/shared/updates/refused-run-repository.ts';
import { ruleKindNames, ruleKinds } from '../../src/shared/updates/rules/rule-kinds.ts';
import { deliveryStates } from '../../src/shared/webhooks/delivery-repository.ts';
import { eventGroups } from '../../src/shared/webhooks/webhook-events.ts';
import { signInLabels } from '../../src/web/audit/sign-in-labels.ts';
import { csvText } from '../../src/web/platform/ui/csv-text.ts';
import { refusalLabels } from '../../src/web/statistics/refusal-labels.ts';
import { describeSettings, ruleKinds as ruleLabels } from '../../src/web/updates/rules/rule-labels.ts';
import { endReasons } from '../../src/web/updates/update-status.ts';
import { groupNames, deliveryStates as stateLabels } from '../../src/web/webhooks/webhook-labels.ts';

/** The values of a schema of literals. */
const literals = ({ anyOf }: { readonly anyOf: readonly { readonly const: string }[] }): string[] =>
  anyOf.map((each) => each.const);

// The web UI knows the server's types only, so its tables of labels name the codes once more.
test.each<[string, readonly string[], object]>([
  ['reasons of refusals', refusalReasons, refusalLabels],
  ['ways to sign in', literals(SignIn), signInLabels],
  ['reasons why updates end', [...Object.keys(leaseLosses), 'lease-expired'], endReasons],
  ['kinds of rules', ruleKindNames, ruleLabels],
  ['states of deliveries', deliveryStates, stateLabels],
  ['groups of events', eventGroups, groupNames],
])('all %s have a label, and no label is left over', (_what, codes, labels) => {
  expect(Object.keys(labels).sort()).toEqual([...codes].sort());
});

test.each([
  ['supersede', 'by'],
  ['require-preview', 'mode'],
  ['consumers', 'mode'],
  ['concurrency', 'per'],
] as const)('each value of a rule "%s" has a sentence of its own', (kind, name) => {
  const schema = (ruleKinds[kind].settings.properties as Record<string, unknown>)[name];
  const values = literals(schema as Parameters<typeof literals>[0]);
  const sentences = values.map((value) => describeSettings(kind, { [name]: value }));
  expect(new Set(sentences).size).toBe(values.length);
  for (const value of values) expect(sentences).not.toContain(value);
});

// The web UI has a copy of these rules, too.
test('both ways to write CSV quote the same cells, and run no formula', () => {
  const plain = ['name', '', 'ümläut', 'a=b', "'"];
  const quoted = ['a,b', 'a"b', 'a\nb'];
  const formulas = [
    '=1+1',
    '+1',
    '-1',
    '@sum',
    '\tx',
    '\rx',
    '\nx',
    '＝1',
    '＋1',
    '－1',
    '＠sum',
    '=HYPERLINK("x","y")',
  ];
  const cells = [...plain, ...quoted, ...formulas];
  expect(csvText([cells])).toBe(csvLine(cells));
  for (const formula of formulas) expect(csvLine([formula])).toMatch(/^"?'/);
  for (const text of plain) expect(csvLine([text])).toBe(`${text}\r\n`);
});
