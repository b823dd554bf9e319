import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { ArchiveRestore } from 'lucide-react';
import { useState } from 'react';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { DeletedStack } from '../../platform/app/procedure-types.ts';
import { RowMenu } from '../../platform/app/row-menu.tsx';
import { every, trpc } from '../../platform/app/trpc.ts';
import { Button } from '../../platform/ui/button.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { MenuItem } from '../../platform/ui/menu.tsx';
import { Page } from '../../platform/ui/page.tsx';
import { pagedList } from '../../platform/ui/paged-list.ts';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { PurgeStackDialog, RestoreStackDialog } from './deleted-stack-dialogs.tsx';
import styles from './deleted-stacks.module.css';
import { deletedStackTexts } from './texts.tsx';

const route = getRouteApi('/$organization/~/deleted-stacks');
const pollMs = 30_000;

/** The page is for admins of the organization. */
export function DeletedStacksPage() {
  const { organization } = route.useParams();
  const navigate = useNavigate();
  const [restoring, setRestoring] = useState<DeletedStack | null>(null);
  const [purging, setPurging] = useState<DeletedStack | null>(null);
  const query = useInfiniteQuery(
    trpc.deletedStacks.list.infiniteQueryOptions(
      { organization },
      { getNextPageParam: (page) => page.next, refetchInterval: every(pollMs) },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const columns: Column<DeletedStack>[] = [
    { name: deletedStackTexts.stack, isTitle: true, cell: nameOf },
    {
      name: deletedStackTexts.deleted,
      cell: ({ deletedAt, deletedBy }) => (
        <span>
          {deletedBy === '' ? <Time at={deletedAt} /> : deletedStackTexts.deletedBy(deletedBy, <Time at={deletedAt} />)}
        </span>
      ),
    },
    {
      name: deletedStackTexts.deletedForGood,
      cell: ({ isHeld, restorableUntil }) => (isHeld ? deletedStackTexts.legalHold : <Time at={restorableUntil} />),
    },
    { name: deletedStackTexts.resources, cell: ({ resourceCount }) => resourceCount },
    {
      name: deletedStackTexts.actions,
      isActions: true,
      cell: (stack) => (
        <span className={styles['actions']}>
          <Button
            size="small"
            aria-label={deletedStackTexts.restoreStack(nameOf(stack))}
            onClick={() => setRestoring(stack)}
          >
            {deletedStackTexts.restore}
          </Button>
          <RowMenu of={nameOf(stack)}>
            <MenuItem onSelect={() => setPurging(stack)}>{deletedStackTexts.deleteForGood}</MenuItem>
          </RowMenu>
        </span>
      ),
    },
  ];
  return (
    <Page title={deletedStackTexts.deletedStacks} lead={deletedStackTexts.lead}>
      <Table
        {...pagedList(query)}
        label={deletedStackTexts.deletedStacks}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title={deletedStackTexts.none} icon={<ArchiveRestore size={20} />}>
            <p>{deletedStackTexts.noneHint}</p>
          </Empty>
        }
      />
      {restoring === null ? null : (
        <RestoreStackDialog
          organization={organization}
          stack={restoring}
          onClose={() => setRestoring(null)}
          onRestored={(params) => void navigate({ to: '/$organization/$project/$stack', params })}
        />
      )}
      {purging === null ? null : (
        <PurgeStackDialog organization={organization} stack={purging} onClose={() => setPurging(null)} />
      )}
    </Page>
  );
}

function nameOf({ project, stack }: DeletedStack): string {
  return `${project}/${stack}`;
}
