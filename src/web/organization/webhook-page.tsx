import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { Problem } from '../app/problem-pages.tsx';
import { queryClient, trpc } from '../app/trpc.ts';
import { ActionDialog } from '../ui/action-dialog.tsx';
import { Button } from '../ui/button.tsx';
import { FactList, FactRow } from '../ui/fact-list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Skeleton } from '../ui/skeleton.tsx';
import { DeliveryTable } from './delivery-table.tsx';
import { WebhookDialog } from './webhook-dialog.tsx';
import { describeEvents, nameOfFormat } from './webhook-words.ts';
import styles from './webhooks.module.css';
import { ActiveBadge } from './webhooks-page.tsx';

const route = getRouteApi('/$organization/~/webhooks/$webhook');

/** A webhook, and what was sent to it. */
export function WebhookPage() {
  const { organization, webhook: name } = route.useParams();
  const { delivery } = route.useSearch();
  const navigate = useNavigate();
  const [asked, setAsked] = useState<'change' | 'remove' | null>(null);
  const query = useQuery(trpc.webhooks.get.queryOptions({ organization, webhook: name }));
  const open = (id: string | undefined): void =>
    void navigate({
      ...{ to: '/$organization/~/webhooks/$webhook', params: { organization, webhook: name } },
      ...{ search: { delivery: id }, replace: true, resetScroll: false },
    });
  const ping = useMutation(
    trpc.webhooks.ping.mutationOptions({
      onSuccess: async ({ id }) => {
        await queryClient.invalidateQueries({ queryKey: trpc.webhooks.deliveries.pathKey() });
        open(id);
      },
    }),
  );
  const remove = useMutation(
    trpc.webhooks.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: '/$organization/~/webhooks', params: { organization } });
        await queryClient.invalidateQueries({ queryKey: trpc.webhooks.list.pathKey() });
      },
    }),
  );
  if (query.error) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  const webhook = query.data;
  if (webhook === undefined)
    return (
      <Page title={name}>
        <Skeleton width={320} />
      </Page>
    );
  return (
    <Page
      title={webhook.displayName}
      lead={<span className={styles['url']}>{webhook.url}</span>}
      actions={
        <>
          <Button kind="main" disabled={ping.isPending} onClick={() => ping.mutate({ organization, webhook: name })}>
            {ping.isPending ? 'Waiting for the response…' : 'Send a ping'}
          </Button>
          <Button onClick={() => setAsked('change')}>Change</Button>
          <Button kind="danger" onClick={() => setAsked('remove')}>
            Remove
          </Button>
        </>
      }
    >
      {ping.error ? <p role="alert">{ping.error.message}</p> : null}
      <FactList>
        <FactRow name="State">
          <ActiveBadge isActive={webhook.isActive} />
        </FactRow>
        <FactRow name="Format">{nameOfFormat(webhook.format)}</FactRow>
        <FactRow name="Told of">{describeEvents(webhook)}</FactRow>
        <FactRow name="Secret">{webhook.hasSecret ? 'set, never shown' : 'none: requests are not signed'}</FactRow>
      </FactList>
      <Section title="Deliveries" lead="The newest first. What was not accepted is sent again for a day.">
        <DeliveryTable organization={organization} webhook={name} chosen={delivery} onOpen={open} />
      </Section>
      {asked === 'change' ? (
        <WebhookDialog organization={organization} webhook={webhook} onClose={() => setAsked(null)} />
      ) : null}
      {asked === 'remove' ? (
        <ActionDialog
          title={`Remove ${webhook.displayName}?`}
          description="Nothing more is sent to it, and its deliveries are forgotten."
          action="Remove"
          stay="Keep it"
          isDanger
          isPending={remove.isPending}
          error={remove.error}
          onClose={() => setAsked(null)}
          onSubmit={() => remove.mutate({ organization, webhook: name })}
        />
      ) : null}
    </Page>
  );
}
