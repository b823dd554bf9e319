import { useInfiniteQuery } from '@tanstack/react-query';
import { CirclePause, Radio, Webhook as WebhookIcon } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { usePageAction } from '../platform/app/page-actions.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { Webhook } from '../platform/app/procedure-types.ts';
import { pageActionTexts } from '../platform/texts.tsx';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { type Column, Table } from '../platform/ui/table.tsx';
import { webhookListTexts } from './texts.tsx';
import { WebhookDialog } from './webhook-dialog.tsx';
import { describeEvents, nameOfFormat } from './webhook-labels.ts';
import type { WebhookOwner } from './webhook-owner.ts';
import styles from './webhooks.module.css';

/** `linkTo` returns a link to a webhook. */
export function WebhookList({
  linkTo,
  owner: { calls, target },
}: {
  readonly owner: WebhookOwner;
  readonly linkTo: (webhook: Webhook) => ReactNode;
}) {
  const query = useInfiniteQuery(calls.list.infiniteQueryOptions(target, { getNextPageParam: (page) => page.next }));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const columns: Column<Webhook>[] = [
    { name: webhookListTexts.name, isTitle: true, cell: linkTo },
    { name: webhookListTexts.url, cell: ({ url }) => <span className={styles['url']}>{url}</span> },
    { name: webhookListTexts.format, cell: ({ format }) => nameOfFormat(format) },
    { name: webhookListTexts.events, cell: describeEvents },
    { name: webhookListTexts.state, cell: ({ isActive }) => <ActiveBadge isActive={isActive} /> },
  ];
  return (
    <Table
      {...pagedList(query)}
      label={webhookListTexts.webhooks}
      columns={columns}
      keyOf={({ name }) => name}
      empty={
        <Empty title={webhookListTexts.noWebhooksYet} icon={<WebhookIcon size={20} />}>
          <p>{webhookListTexts.emptyHint}</p>
        </Empty>
      }
    />
  );
}

/** Adds a webhook. `onMade`: gets its name. */
export function AddWebhook({
  onMade,
  owner,
}: {
  readonly owner: WebhookOwner;
  readonly onMade: (name: string) => void;
}) {
  const [isAdding, setIsAdding] = useState(false);
  usePageAction(pageActionTexts.addWebhook, () => setIsAdding(true));
  return (
    <>
      <Button kind="main" onClick={() => setIsAdding(true)}>
        {webhookListTexts.addAWebhook}
      </Button>
      {isAdding ? (
        <WebhookDialog owner={owner} webhook={null} onClose={() => setIsAdding(false)} onMade={onMade} />
      ) : null}
    </>
  );
}

export function ActiveBadge({ isActive }: { readonly isActive: boolean }) {
  return isActive ? (
    <Badge tone="success" icon={<Radio aria-hidden="true" />}>
      {webhookListTexts.active}
    </Badge>
  ) : (
    <Badge tone="neutral" icon={<CirclePause aria-hidden="true" />}>
      {webhookListTexts.paused}
    </Badge>
  );
}
