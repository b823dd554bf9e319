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
import { approvalsTexts } from './texts.tsx';

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
    <Page title={approvalsTexts.title} lead={approvalsTexts.lead}>
      <Tabs label={approvalsTexts.title}>
        <Tab to="." search={{}} isChosen={!isGiven}>
          {approvalsTexts.requested}
        </Tab>
        <Tab to="." search={{ given: '1' }} isChosen={isGiven}>
          {approvalsTexts.approved}
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
              <Empty title={approvalsTexts.noApprovalsYet} icon={<ShieldCheck size={20} />}>
                <p>{approvalsTexts.noApprovalsHint}</p>
              </Empty>
            ) : (
              <Empty title={approvalsTexts.noPendingRequests} icon={<ShieldCheck size={20} />}>
                <p>{approvalsTexts.noRequestsHint}</p>
              </Empty>
            )
          }
        />
      )}
    </Page>
  );
}
