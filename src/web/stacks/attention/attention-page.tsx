import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { CircleCheck } from 'lucide-react';
import { useEffect } from 'react';
import { useMe } from '../../platform/app/me.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { Attention } from '../../platform/app/procedure-types.ts';
import { every, trpc } from '../../platform/app/trpc.ts';
import { pageTexts } from '../../platform/texts.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { Page, Section } from '../../platform/ui/page.tsx';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import type { StackStatus } from '../stack-filter.ts';
import styles from './attention-page.module.css';
import { type AttentionRow, approvalRow, freezeRow, maxCounted, troubleRow, waitRow } from './attention-rows.tsx';
import { attentionTexts } from './texts.tsx';

const refreshMs = 60_000;

interface Group {
  readonly title: string;
  readonly rows: readonly AttentionRow[];
  readonly count: number;
  /** The filter of the list of stacks that shows all of them. */
  readonly status?: StackStatus;
}

/**
 * Failed, interrupted, drifted and frozen stacks, requests for approvals and long waits: of all organizations, or of the one in the path.
 */
export function AttentionPage() {
  const { organization } = useParams({ strict: false });
  const query = useQuery(
    trpc.stacks.attention.queryOptions(organization === undefined ? {} : { organization }, {
      refetchInterval: every(refreshMs),
    }),
  );
  const problem = useProblem(query);
  useEffect(() => {
    document.title = pageTexts.tabTitle(pageTexts.needsAttention);
  }, []);
  const showsOrganization = (useMe()?.organizations.length ?? 0) > 1 && organization === undefined;
  const groups = query.data && groupsOf(query.data).filter(({ count }) => count > 0);
  const columns = columnsOf(showsOrganization);
  return (
    <Page title={attentionTexts.title}>
      {problem ? (
        <Problem {...problem} />
      ) : groups === undefined ? (
        <Table label={attentionTexts.title} columns={columns} items={undefined} keyOf={({ key }) => key} empty={null} />
      ) : groups.length === 0 ? (
        <Empty
          title={query.data?.isPartial ? attentionTexts.nothingFound : attentionTexts.allIsWell}
          icon={<CircleCheck size={20} />}
        >
          {query.data?.isPartial ? null : <p>{attentionTexts.allFound}</p>}
        </Empty>
      ) : (
        <div className={styles['groups']}>
          {groups.map(({ count, rows, status, title }) => (
            <Section
              key={title}
              title={`${title} (${count > maxCounted ? `${maxCounted}+` : count})`}
              actions={
                count > rows.length && status !== undefined ? (
                  <Link
                    to={organization === undefined ? '/' : '/$organization'}
                    params={organization === undefined ? {} : { organization }}
                    search={{ status }}
                  >
                    {attentionTexts.showAll}
                    <span className="unseen"> {attentionTexts.showAllOf(title)}</span>
                  </Link>
                ) : undefined
              }
            >
              <Table label={title} columns={columns} items={rows} keyOf={({ key }) => key} empty={null} />
            </Section>
          ))}
        </div>
      )}
      {query.data?.isPartial ? <p>{attentionTexts.isPartial}</p> : null}
    </Page>
  );
}

function groupsOf(found: Attention): readonly Group[] {
  const { approvals, drifted, failed, frozen, interrupted, queued } = found;
  return [
    { title: attentionTexts.approvals, rows: approvals.items.map(approvalRow), count: approvals.count },
    { title: attentionTexts.failed, rows: failed.items.map(troubleRow), count: failed.count, status: 'failed' },
    {
      title: attentionTexts.interrupted,
      rows: interrupted.items.map(troubleRow),
      count: interrupted.count,
      status: 'interrupted',
    },
    { title: attentionTexts.longWaits, rows: queued.items.map(waitRow), count: queued.count },
    { title: attentionTexts.drifted, rows: drifted.items.map(troubleRow), count: drifted.count, status: 'drifted' },
    { title: attentionTexts.frozen, rows: frozen.items.map(freezeRow), count: frozen.count, status: 'frozen' },
  ];
}

function columnsOf(showsOrganization: boolean): Column<AttentionRow>[] {
  return [
    {
      name: attentionTexts.stack,
      isTitle: true,
      cell: ({ organization, scope, search, stack }) =>
        stack === null ? (
          <Link to="/$organization" params={{ organization }} search={search ?? {}}>
            {showsOrganization && scope !== `organization ${organization}` ? `${organization}: ${scope}` : scope}
          </Link>
        ) : (
          <Link to="/$organization/$project/$stack" params={{ organization, ...stack }}>
            {showsOrganization ? `${organization}/` : ''}
            {stack.project}/{stack.stack}
          </Link>
        ),
    },
    { name: attentionTexts.reason, cell: ({ reason }) => <div className={styles['reason']}>{reason}</div> },
    { name: attentionTexts.since, cell: ({ since }) => <Time at={since} /> },
    { name: attentionTexts.by, cell: ({ by }) => by },
  ];
}
