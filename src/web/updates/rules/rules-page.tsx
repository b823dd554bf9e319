import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Snowflake } from 'lucide-react';
import { useState } from 'react';
import type { Rule } from '../../platform/app/contract.ts';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import { usePageAction } from '../../platform/app/page-actions.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import { apiClient, every, queryClient, trpc } from '../../platform/app/trpc.ts';
import { useRemoval } from '../../platform/app/use-edit.ts';
import { Button } from '../../platform/ui/button.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { Page, Section } from '../../platform/ui/page.tsx';
import { pagedList } from '../../platform/ui/paged-list.ts';
import { Time } from '../../platform/ui/time.tsx';
import { RuleDialog } from './rule-dialog.tsx';
import { emptyDraft } from './rule-draft.ts';
import {
  declaredKind,
  describeSettings,
  limitedKinds,
  nameOfKind,
  queueKinds,
  type RuleKind,
  retentionKinds,
} from './rule-labels.ts';
import { FreezeTable, RuleTable } from './rule-table.tsx';
import styles from './rules.module.css';

const route = getRouteApi('/$organization/~/rules');
const pollMs = 30_000;

interface Edited {
  /** Null: a new one. */
  readonly rule: Rule | null;
  readonly kinds: readonly RuleKind[];
}

/** Rules for the updates of the organization's stacks. */
export function RulesPage() {
  const { organization } = route.useParams();
  const { rule: chosen } = route.useSearch();
  const [edited, setEdited] = useState<Edited | null>(null);
  const [removed, setRemoved] = useState<Rule | null>(null);
  const add = (kinds: readonly RuleKind[]): void => setEdited({ rule: null, kinds });
  const edit = (rule: Rule): void => setEdited({ rule, kinds: [rule.kind as RuleKind] });
  usePageAction('Freeze stacks', () => add(['freeze']));
  const freezes = useRules(organization, ['freeze']);
  const queues = useRules(organization, queueKinds);
  const changeLimits = useRules(organization, limitedKinds);
  const kept = useRules(organization, retentionKinds);
  const problem = useProblem(freezes, queues, changeLimits, kept);
  if (problem) return <Problem {...problem} />;
  return (
    <Page
      title="Rules"
      lead="What updates may do, and when. For most kinds, the most specific rule applies: stack, tag, project, organization."
    >
      <Section
        title="Freezes"
        lead={
          <>
            In an emergency, a user who can manage the stack can bypass a freeze with{' '}
            <code className={styles['command']}>pulumi up -m "break-glass: why"</code>.
          </>
        }
        actions={
          <Button kind="main" onClick={() => add(['freeze'])}>
            <Snowflake size={15} aria-hidden="true" />
            Freeze
          </Button>
        }
      >
        <FreezeTable
          {...pagedList(freezes)}
          chosen={chosen}
          onEdit={edit}
          onRemove={setRemoved}
          empty={
            <Empty title="Nothing is frozen">
              <p>Freeze stacks for a release, a sale or each weekend. Users who run an update then see the reason.</p>
            </Empty>
          }
        />
      </Section>
      <Section
        title="Queues"
        lead="How many updates run at once, how long others wait, and which waiting runs are superseded."
        actions={<Button onClick={() => add(queueKinds)}>Add a queue rule</Button>}
      >
        <RuleTable
          {...pagedList(queues)}
          label="Queues"
          chosen={chosen}
          onEdit={edit}
          onRemove={setRemoved}
          empty={
            <p>
              No rules: each stack runs one update at a time, and the settings of the server decide how long others
              wait.
            </p>
          }
        />
      </Section>
      <Section
        title="Change limits"
        lead="Changes that updates may not make without a preview or an approval."
        actions={<Button onClick={() => add(limitedKinds)}>Add a change limit</Button>}
      >
        <RuleTable
          {...pagedList(changeLimits)}
          label="Change limits"
          chosen={chosen}
          onEdit={edit}
          onRemove={setRemoved}
          empty={<p>No change limits: anyone who can update a stack can delete all of it.</p>}
        />
      </Section>
      <Section
        title="Retention"
        lead="How long versions, logs and previews are kept. Older ones are deleted for good, within hours."
        actions={<Button onClick={() => add(retentionKinds)}>Add a retention rule</Button>}
      >
        <RuleTable
          {...pagedList(kept)}
          label="Retention"
          chosen={chosen}
          onEdit={edit}
          onRemove={setRemoved}
          empty={<p>No rules: everything is kept.</p>}
        />
      </Section>
      {edited === null ? null : (
        <RuleDialog
          organization={organization}
          first={emptyDraft(edited.kinds[0] as RuleKind)}
          rule={edited.rule}
          kinds={edited.kinds}
          onClose={() => setEdited(null)}
        />
      )}
      {removed === null ? null : (
        <RemoveDialog organization={organization} rule={removed} onClose={() => setRemoved(null)} />
      )}
    </Page>
  );
}

function useRules(organization: string, kinds: readonly RuleKind[]) {
  return useInfiniteQuery(
    trpc.rules.list.infiniteQueryOptions(
      { organization, kinds: [...kinds] },
      { getNextPageParam: (page) => page.next, refetchInterval: every(pollMs) },
    ),
  );
}

/** Asks before a rule is removed. */
export function RemoveDialog({
  onClose,
  organization,
  rule,
}: {
  readonly organization: string;
  readonly rule: Omit<Rule, 'freeze' | 'isManaged'>;
  readonly onClose: () => void;
}) {
  const { dialog, item } = useRemoval({
    item: rule,
    read: () => apiClient.rules.get.query({ organization, ruleId: rule.id }),
  });
  const remove = useMutation(
    trpc.rules.remove.mutationOptions({
      onSuccess: async () => {
        await queryClient.invalidateQueries();
        onClose();
      },
    }),
  );
  const { kind, note, scope, settings } = item;
  const isFreeze = kind === 'freeze';
  const until = isFreeze ? settings['until'] : undefined;
  return (
    <ManagedDialog
      managed={{ organization, kind: declaredKind(kind), object: rule.id }}
      title={isFreeze ? 'Thaw?' : `Remove the rule ${nameOfKind(kind)}?`}
      description={
        <>
          {isFreeze ? 'Updates are allowed again at once, and its windows are removed: ' : 'It no longer applies to '}
          {scope}
          {isFreeze ? null : ` (${describeSettings(kind, settings)})`}
          {typeof until === 'string' ? (
            <>
              , which it would hold until <Time at={until} />
            </>
          ) : null}
          {note === '' ? '.' : `: ${note}`}
        </>
      }
      action={isFreeze ? 'Thaw' : 'Remove'}
      stay="Keep it"
      isDanger={!isFreeze}
      {...dialog(remove)}
      onClose={onClose}
      onSubmit={() => remove.mutate({ organization, ruleId: rule.id, revision: item.revision })}
    />
  );
}
