import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Plus, ShieldCheck } from 'lucide-react';
import { useState } from 'react';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import { trpc } from '../../platform/app/trpc.ts';
import { Button } from '../../platform/ui/button.tsx';
import { Code } from '../../platform/ui/code.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { Page } from '../../platform/ui/page.tsx';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { trustTexts } from '../texts.tsx';
import { IssuerDialog } from './issuer-dialogs.tsx';
import { IssuerSection } from './issuer-section.tsx';

const route = getRouteApi('/$organization/~/trust-policies');
const pageSize = 20;

export function TrustPoliciesPage() {
  const { organization } = route.useParams();
  const [isAdding, setIsAdding] = useState(false);
  const query = useInfiniteQuery(
    trpc.issuers.list.infiniteQueryOptions({ organization, limit: pageSize }, { getNextPageParam: ({ next }) => next }),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const items = query.data?.pages.flatMap((page) => page.items);
  return (
    <Page
      title={trustTexts.title}
      lead={trustTexts.lead}
      actions={
        <Button kind="main" onClick={() => setIsAdding(true)}>
          <Plus size={16} aria-hidden="true" />
          {trustTexts.trustIssuer}
        </Button>
      }
    >
      {items === undefined ? <Skeleton width={320} height={20} /> : null}
      {items?.length === 0 ? (
        <Empty title={trustTexts.none} icon={<ShieldCheck size={20} />}>
          <p>{trustTexts.noneHint}</p>
          <Code>{`holdfast admin issuer add github --organization ${organization} --url https://token.actions.githubusercontent.com`}</Code>
        </Empty>
      ) : null}
      {items?.map((issuer) => (
        <IssuerSection key={issuer.id} organization={organization} issuer={issuer} />
      ))}
      {query.hasNextPage ? (
        <p>
          <Button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            {query.isFetchingNextPage ? trustTexts.loading : trustTexts.showMore}
          </Button>
        </p>
      ) : null}
      {isAdding ? <IssuerDialog organization={organization} issuer={null} onClose={() => setIsAdding(false)} /> : null}
    </Page>
  );
}
