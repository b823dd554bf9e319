import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Snowflake } from 'lucide-react';
import { useState } from 'react';
import { useIsMissing, useIsUnseen } from '../../platform/app/linked-item.ts';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import { usePageAction } from '../../platform/app/page-actions.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { Rule } from '../../platform/app/procedure-types.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { apiClient, every, trpc } from '../../platform/app/trpc.ts';
import { useRemoval } from '../../platform/app/use-edit.ts';
import { pageActionTexts } from '../../platform/texts.tsx';
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
import { rulesTexts } from './texts.tsx';

const route = getRouteApi('/$organization/~/rules');
const pollMs = 30_000;

interface Edited {
  /** Null: a new rule. */
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
  usePageAction(pageActionTexts.freezeStacks, () => add(['freeze']));
  const freezes = useRules(organization, ['freeze']);
  const queues = useRules(organization, queueKinds);
  const changeLimits = useRules(organization, limitedKinds);
  const kept = useRules(organization, retentionKinds);
  const lists = [freezes, queues, changeLimits, kept];
  const isFound = lists.some(({ data }) => data?.pages.some(({ items }) => items.some(({ id }) => id === chosen)));
  const isUnseen = useIsUnseen(chosen, isFound, ...lists);
  const linked = useQuery(trpc.rules.get.queryOptions({ organization, ruleId: chosen ?? '' }, { enabled: isUnseen }));
  const isMissing = useIsMissing(isUnseen, linked, ...lists);
  const problem = useProblem(...lists);
  if (problem) return <Problem {...problem} />;
  return (
    <Page title={rulesTexts.title} lead={rulesTexts.lead}>
      <p role="status">{isMissing ? rulesTexts.linkedRuleIsGone : null}</p>
      <Section
        title={rulesTexts.freezes}
        lead={rulesTexts.freezesLead(<code className={styles['command']}>pulumi up -m "break-glass: why"</code>)}
        actions={
          <Button kind="main" onClick={() => add(['freeze'])}>
            <Snowflake size={15} aria-hidden="true" />
            {rulesTexts.freeze}
          </Button>
        }
      >
        <FreezeTable
          {...pagedList(freezes)}
          chosen={chosen}
          onEdit={edit}
          onRemove={setRemoved}
          empty={
            <Empty title={rulesTexts.nothingIsFrozen}>
              <p>{rulesTexts.nothingIsFrozenHint}</p>
            </Empty>
          }
        />
      </Section>
      <Section
        title={rulesTexts.queues}
        lead={rulesTexts.queuesLead}
        actions={<Button onClick={() => add(queueKinds)}>{rulesTexts.addQueueRule}</Button>}
      >
        <RuleTable
          {...pagedList(queues)}
          label={rulesTexts.queues}
          chosen={chosen}
          onEdit={edit}
          onRemove={setRemoved}
          empty={<p>{rulesTexts.noQueueRules}</p>}
        />
      </Section>
      <Section
        title={rulesTexts.changeLimits}
        lead={rulesTexts.changeLimitsLead}
        actions={<Button onClick={() => add(limitedKinds)}>{rulesTexts.addChangeLimit}</Button>}
      >
        <RuleTable
          {...pagedList(changeLimits)}
          label={rulesTexts.changeLimits}
          chosen={chosen}
          onEdit={edit}
          onRemove={setRemoved}
          empty={<p>{rulesTexts.noChangeLimits}</p>}
        />
      </Section>
      <Section
        title={rulesTexts.retention}
        lead={rulesTexts.retentionLead}
        actions={<Button onClick={() => add(retentionKinds)}>{rulesTexts.addRetentionRule}</Button>}
      >
        <RuleTable
          {...pagedList(kept)}
          label={rulesTexts.retention}
          chosen={chosen}
          onEdit={edit}
          onRemove={setRemoved}
          empty={<p>{rulesTexts.noRetentionRules}</p>}
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
  const remove = useMutation(trpc.rules.remove.mutationOptions(thenRefresh(onClose)));
  const { kind, note, scope, settings } = item;
  const isFreeze = kind === 'freeze';
  const until = isFreeze ? settings['until'] : undefined;
  return (
    <ManagedDialog
      managed={{ organization, kind: declaredKind(kind), object: rule.id }}
      title={isFreeze ? rulesTexts.thawQuestion : rulesTexts.removeTheRule(nameOfKind(kind))}
      description={
        isFreeze
          ? rulesTexts.thawDescription(scope, typeof until === 'string' ? <Time at={until} /> : null, note)
          : rulesTexts.removalDescription(scope, describeSettings(kind, settings), note)
      }
      action={isFreeze ? rulesTexts.thaw : rulesTexts.remove}
      stay={rulesTexts.keepIt}
      isDanger={!isFreeze}
      {...dialog(remove)}
      onClose={onClose}
      onSubmit={() => remove.mutate({ organization, ruleId: rule.id, revision: item.revision })}
    />
  );
}
