import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { Check, CircleSlash, Clock, X } from 'lucide-react';
import { PartProblem, Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { Delivery } from '../platform/app/procedure-types.ts';
import { refresh } from '../platform/app/then-refresh.ts';
import { every } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import { useRefetchOnChange } from '../updates/refetch-on-change.ts';
import { deliveryTableTexts } from './texts.tsx';
import { deliveryStates, nameOfEvent } from './webhook-labels.ts';
import type { WebhookOwner } from './webhook-owner.ts';
import styles from './webhooks.module.css';

const pollMs = 10_000;
const icons = { success: Check, failure: X, running: Clock, neutral: CircleSlash } as const;

/** The requests sent to a webhook, and the responses. */
export function DeliveryTable({
  chosen,
  onOpen,
  owner: { calls, target },
  webhook,
}: {
  readonly owner: WebhookOwner;
  readonly webhook: string;
  readonly chosen: string | undefined;
  readonly onOpen: (id: string | undefined) => void;
}) {
  const query = useInfiniteQuery(
    calls.deliveries.infiniteQueryOptions(
      { ...target, webhook },
      { getNextPageParam: (page) => page.next, refetchInterval: every(pollMs) },
    ),
  );
  const redeliver = useMutation(
    calls.redeliver.mutationOptions({ onSuccess: () => refresh(calls.deliveries.pathKey()) }),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const columns: Column<Delivery>[] = [
    {
      name: deliveryTableTexts.event,
      isTitle: true,
      cell: ({ event, isManual, project, stack }) => (
        <span>
          {nameOfEvent(event)}{' '}
          <span className={styles['minor']}>{deliveryTableTexts.sourceOf(isManual, stack, project)}</span>
        </span>
      ),
    },
    { name: deliveryTableTexts.result, cell: (delivery) => <DeliveryState delivery={delivery} /> },
    {
      name: deliveryTableTexts.duration,
      align: 'right',
      cell: ({ durationMs }) => (durationMs === null ? '' : deliveryTableTexts.milliseconds(durationMs)),
    },
    { name: deliveryTableTexts.sent, align: 'right', cell: ({ at }) => <Time at={at} /> },
    {
      name: deliveryTableTexts.actions,
      isActions: true,
      cell: ({ event, id }) => (
        <span className={styles['buttons']}>
          <Button
            size="small"
            kind="quiet"
            aria-expanded={id === chosen}
            aria-label={deliveryTableTexts.showOrHide(id === chosen, nameOfEvent(event))}
            onClick={() => onOpen(id === chosen ? undefined : id)}
          >
            {id === chosen ? deliveryTableTexts.hide : deliveryTableTexts.show}
          </Button>
          <Button
            size="small"
            kind="quiet"
            aria-label={deliveryTableTexts.sendEventAgain(nameOfEvent(event))}
            disabled={redeliver.isPending}
            onClick={() =>
              redeliver.mutate({ ...target, webhook, deliveryId: id }, { onSuccess: (sent) => onOpen(sent.id) })
            }
          >
            {deliveryTableTexts.sendAgain}
          </Button>
        </span>
      ),
    },
  ];
  const { items, ...list } = pagedList(query);
  const isElsewhere = chosen !== undefined && items !== undefined && !items.some(({ id }) => id === chosen);
  return (
    <>
      {isElsewhere ? (
        <section>
          <h3>{deliveryTableTexts.linkedDelivery}</h3>
          <Exchange owner={{ calls, target }} webhook={webhook} deliveryId={chosen} outcome={null} />
          <Button size="small" onClick={() => onOpen(undefined)}>
            {deliveryTableTexts.hide}
          </Button>
        </section>
      ) : null}
      {redeliver.error ? <p role="alert">{redeliver.error.message}</p> : null}
      <Table
        {...list}
        items={items}
        label={deliveryTableTexts.deliveries}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title={deliveryTableTexts.noDeliveriesYet}>
            <p>{deliveryTableTexts.sendAPing}</p>
          </Empty>
        }
        details={({ attempts, id, state }) =>
          id === chosen ? (
            <Exchange owner={{ calls, target }} webhook={webhook} deliveryId={id} outcome={[state, attempts].join()} />
          ) : null
        }
      />
    </>
  );
}

function DeliveryState({ delivery: { attempts, responseStatus, state } }: { readonly delivery: Delivery }) {
  const { tone, word } = deliveryStates[state] ?? { tone: 'neutral' as const, word: state };
  const Icon = icons[tone];
  return (
    <span className={styles['result']}>
      <Badge tone={tone} icon={<Icon aria-hidden="true" />}>
        {state === 'waiting' && responseStatus !== null
          ? deliveryTableTexts.retryingAfter(responseStatus)
          : `${word}${responseStatus === null ? '' : ` ${responseStatus}`}`}
      </Badge>
      {attempts > 1 ? <span className={styles['minor']}>{deliveryTableTexts.attempts(attempts)}</span> : null}
    </span>
  );
}

/** Reloaded when `outcome` changes, for example after a retry; if it is null (unknown), until the last attempt. */
function Exchange({
  outcome,
  owner: { calls, target },
  ...chosen
}: {
  readonly owner: WebhookOwner;
  readonly webhook: string;
  readonly deliveryId: string;
  readonly outcome: string | null;
}) {
  const query = useQuery(
    calls.delivery.queryOptions(
      { ...target, ...chosen },
      {
        refetchInterval: ({ state }) =>
          every(outcome === null && state.data?.state === 'waiting' ? pollMs : null)({ state }),
      },
    ),
  );
  useRefetchOnChange(outcome ?? '', query.refetch);
  const problem = useProblem(query);
  if (problem) return <PartProblem {...problem} />;
  const delivery = query.data;
  if (delivery === undefined) return <Skeleton width="60%" />;
  return (
    <div className={styles['exchange']}>
      <Part title={deliveryTableTexts.request} head={delivery.requestHeaders} body={readable(delivery.payload)} />
      <Part
        title={
          delivery.responseStatus === null
            ? deliveryTableTexts.noResponse
            : deliveryTableTexts.response(delivery.responseStatus)
        }
        head={delivery.responseHeaders}
        body={delivery.responseBody}
      />
    </div>
  );
}

function Part({
  body,
  head,
  title,
}: {
  readonly title: string;
  readonly head: string | null;
  readonly body: string | null;
}) {
  const text = [head?.trim(), body].filter(Boolean).join('\n\n');
  return (
    <section className={styles['part']}>
      <h3>{title}</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keys. */}
      <section className={styles['text']} tabIndex={0} aria-label={deliveryTableTexts.asText(title)}>
        <pre>{text === '' ? deliveryTableTexts.nothing : text}</pre>
      </section>
    </section>
  );
}

/** JSON with line breaks; other texts unchanged. */
function readable(text: string | null): string | null {
  if (text === null) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
