import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { CirclePause, Radio, Webhook as WebhookIcon } from 'lucide-react';
import { useState } from 'react';
import type { Webhook } from '../app/contract.ts';
import { Problem } from '../app/problem-pages.tsx';
import { trpc } from '../app/trpc.ts';
import { Badge } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { Page } from '../ui/page.tsx';
import { pagedList } from '../ui/paged-list.ts';
import { type Column, Table } from '../ui/table.tsx';
import { WebhookDialog } from './webhook-dialog.tsx';
import { describeEvents, nameOfFormat } from './webhook-words.ts';
import styles from './webhooks.module.css';

const route = getRouteApi('/$organization/~/webhooks');

/** Whom the organization tells of what happens. */
export function WebhooksPage() {
  const { organization } = route.useParams();
  const navigate = useNavigate();
  const [isAdding, setIsAdding] = useState(false);
  const query = useInfiniteQuery(
    trpc.webhooks.list.infiniteQueryOptions({ organization }, { getNextPageParam: (page) => page.next }),
  );
  if (query.error) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  const columns: Column<Webhook>[] = [
    {
      name: 'Name',
      isTitle: true,
      cell: ({ displayName, name }) => (
        <Link to="/$organization/~/webhooks/$webhook" params={{ organization, webhook: name }}>
          {displayName}
        </Link>
      ),
    },
    { name: 'URL', cell: ({ url }) => <span className={styles['url']}>{url}</span> },
    { name: 'Format', isMinor: true, cell: ({ format }) => nameOfFormat(format) },
    { name: 'Told of', isMinor: true, cell: describeEvents },
    { name: 'State', cell: ({ isActive }) => <ActiveBadge isActive={isActive} /> },
  ];
  const add = (kind?: 'main') => (
    <Button kind={kind ?? 'plain'} onClick={() => setIsAdding(true)}>
      Add a webhook
    </Button>
  );
  return (
    <Page
      title="Webhooks"
      lead="Other systems that are told of updates, drift, freezes and approvals of all stacks. Stacks can have webhooks of their own: pulumi stack webhook."
      actions={add('main')}
    >
      <Table
        {...pagedList(query)}
        label="Webhooks"
        columns={columns}
        keyOf={({ name }) => name}
        empty={
          <Empty title="Nobody is told yet" icon={<WebhookIcon size={20} />}>
            <p>
              Send what happens to Slack, Microsoft Teams, the status of commits, or any server that understands JSON.
            </p>
          </Empty>
        }
      />
      {isAdding ? (
        <WebhookDialog
          organization={organization}
          webhook={null}
          onClose={() => setIsAdding(false)}
          onMade={(webhook) =>
            void navigate({ to: '/$organization/~/webhooks/$webhook', params: { organization, webhook } })
          }
        />
      ) : null}
    </Page>
  );
}

export function ActiveBadge({ isActive }: { readonly isActive: boolean }) {
  return isActive ? (
    <Badge tone="success" icon={<Radio aria-hidden="true" />}>
      Active
    </Badge>
  ) : (
    <Badge tone="neutral" icon={<CirclePause aria-hidden="true" />}>
      Paused
    </Badge>
  );
}
