import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { ManagedDialog } from '../platform/app/managed-dialog.tsx';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { Webhook } from '../platform/app/procedure-types.ts';
import { refresh } from '../platform/app/then-refresh.ts';
import { useRemoval } from '../platform/app/use-edit.ts';
import { Button } from '../platform/ui/button.tsx';
import { FactList, FactRow } from '../platform/ui/fact-list.tsx';
import { Page, Section } from '../platform/ui/page.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { DeliveryTable } from './delivery-table.tsx';
import { HookMark } from './hook-mark.tsx';
import { webhookTexts } from './texts.tsx';
import { WebhookDialog } from './webhook-dialog.tsx';
import { describeEvents, nameOfFormat } from './webhook-labels.ts';
import { ActiveBadge } from './webhook-list.tsx';
import { managedWebhook, ofOrganization, readWebhook, type WebhookOwner } from './webhook-owner.ts';
import styles from './webhooks.module.css';

const route = getRouteApi('/$organization/~/webhooks/$webhook');

export function WebhookPage() {
  const { organization, webhook } = route.useParams();
  const { delivery } = route.useSearch();
  const navigate = useNavigate();
  const to = '/$organization/~/webhooks' as const;
  return (
    <WebhookView
      owner={ofOrganization(organization)}
      name={webhook}
      delivery={delivery}
      onOpen={(id) =>
        void navigate({
          ...{ to: `${to}/$webhook` as const, params: { organization, webhook } },
          ...{ search: { delivery: id }, replace: true, resetScroll: false },
        })
      }
      onRemoved={() => navigate({ to, params: { organization } })}
    />
  );
}

/** `delivery` is the open one. */
export function WebhookView({
  delivery,
  name,
  onOpen: open,
  onRemoved,
  owner,
}: {
  readonly owner: WebhookOwner;
  readonly name: string;
  readonly delivery: string | undefined;
  readonly onOpen: (delivery: string | undefined) => void;
  readonly onRemoved: () => Promise<void>;
}) {
  const { calls, target } = owner;
  const [asked, setAsked] = useState<'change' | 'remove' | null>(null);
  const query = useQuery(calls.get.queryOptions({ ...target, webhook: name }));
  const ping = useMutation(calls.ping.mutationOptions({ onSuccess: () => refresh(calls.deliveries.pathKey()) }));
  // If the user has left the page, an option of the call is ignored, unlike an option of the mutation.
  const send = () => ping.mutate({ ...target, webhook: name }, { onSuccess: ({ id }) => open(id) });
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const webhook = query.data;
  if (webhook === undefined)
    return (
      <Page title={name}>
        <Skeleton width={320} />
      </Page>
    );
  return (
    <Page
      title={
        <>
          {webhook.displayName} <HookMark owner={owner} name={name} />
        </>
      }
      lead={<span className={styles['url']}>{webhook.url}</span>}
      actions={
        <>
          <Button kind="main" disabled={ping.isPending} onClick={send}>
            {ping.isPending ? webhookTexts.waitingForResponse : webhookTexts.sendAPing}
          </Button>
          <Button onClick={() => setAsked('change')}>{webhookTexts.edit}</Button>
          <Button kind="danger" onClick={() => setAsked('remove')}>
            {webhookTexts.remove}
          </Button>
        </>
      }
    >
      {ping.error ? <p role="alert">{ping.error.message}</p> : null}
      <FactList>
        <FactRow name={webhookTexts.state}>
          <ActiveBadge isActive={webhook.isActive} />
        </FactRow>
        <FactRow name={webhookTexts.format}>{nameOfFormat(webhook.format)}</FactRow>
        <FactRow name={webhookTexts.events}>{describeEvents(webhook)}</FactRow>
        <FactRow name={webhookTexts.secret}>
          {webhook.hasSecret ? webhookTexts.setNeverShown : webhookTexts.notSigned}
        </FactRow>
      </FactList>
      <Section title={webhookTexts.deliveries} lead={webhookTexts.lead}>
        <DeliveryTable owner={owner} webhook={name} chosen={delivery} onOpen={open} />
      </Section>
      {asked === 'change' ? <WebhookDialog owner={owner} webhook={webhook} onClose={() => setAsked(null)} /> : null}
      {asked === 'remove' ? (
        <RemoveDialog owner={owner} webhook={webhook} onClose={() => setAsked(null)} onRemoved={onRemoved} />
      ) : null}
    </Page>
  );
}

function RemoveDialog({
  onClose,
  onRemoved,
  owner,
  webhook,
}: {
  readonly owner: WebhookOwner;
  readonly webhook: Webhook;
  readonly onClose: () => void;
  readonly onRemoved: () => Promise<void>;
}) {
  const { calls, target } = owner;
  const { dialog, item } = useRemoval({ item: webhook, read: () => readWebhook(owner, webhook.name) });
  const remove = useMutation(
    // Only the list: the queries of this page would fail once the webhook is gone.
    calls.remove.mutationOptions({ onSuccess: () => refresh(calls.list.pathKey()) }),
  );
  return (
    <ManagedDialog
      managed={managedWebhook(owner, webhook.name)}
      title={webhookTexts.removeQuestion(item.displayName)}
      description={webhookTexts.removalDescription(<span className={styles['url']}>{item.url}</span>)}
      action={webhookTexts.remove}
      stay={webhookTexts.keepIt}
      isDanger
      {...dialog(remove)}
      onClose={onClose}
      onSubmit={() =>
        remove.mutate({ ...target, webhook: item.name, revision: item.revision }, { onSuccess: () => void onRemoved() })
      }
    />
  );
}
