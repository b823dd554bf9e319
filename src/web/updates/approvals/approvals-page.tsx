import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { ShieldCheck } from 'lucide-react';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import { every, trpc } from '../../platform/app/trpc.ts';
import { Empty } from '../../platform/ui/empty.tsx';
import { Page } from '../../platform/ui/page.tsx';
import { pagedList } from '../../platform/ui/paged-list.ts';
import { Tab, Tabs } from '../../platform/ui/tabs.tsx';
import { ApprovalTable } from './approval-table.tsx';

const route = getRouteApi('/$organization/~/approvals');
const pollMs = 10_000;

/** Approvals of the stacks that the user may read. */
export function ApprovalsPage() {
  const { organization } = route.useParams();
  const isGiven = route.useSearch().given === '1';
  const query = useInfiniteQuery(
    trpc.approvals.list.infiniteQueryOptions(
      { organization, given: isGiven },
      { getNextPageParam: (page) => page.next, refetchInterval: every(pollMs) },
    ),
  );
  const problem = useProblem(query);
  return (
    <Page
      title="Approvals"
      lead="A run that would delete or replace more than the rules allow is stopped and requests an approval. Once another user approves its commit, the next run passes."
    >
      <Tabs label="Approvals">
        <Tab to="." search={{}} isChosen={!isGiven}>
          Requested
        </Tab>
        <Tab to="." search={{ given: '1' }} isChosen={isGiven}>
          Approved
        </Tab>
      </Tabs>
      {problem ? (
        <Problem {...problem} />
      ) : (
        <ApprovalTable
          {...pagedList(query)}
          organization={organization}
          empty={
            isGiven ? (
              <Empty title="No approvals yet" icon={<ShieldCheck size={20} />}>
                <p>Approvals stay here, with the approver and the reason.</p>
              </Empty>
            ) : (
              <Empty title="No pending requests" icon={<ShieldCheck size={20} />}>
                <p>The organization’s rules (change limits and protected types) decide which runs need an approval.</p>
              </Empty>
            )
          }
        />
      )}
    </Page>
  );
}
