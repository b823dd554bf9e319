import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { Check, CircleSlash, Clock, X } from 'lucide-react';
import type { Delivery } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { every, queryClient } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
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
    calls.redeliver.mutationOptions({
      onSuccess: async ({ id }) => {
        await queryClient.invalidateQueries({ queryKey: calls.deliveries.pathKey() });
        onOpen(id);
      },
    }),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const columns: Column<Delivery>[] = [
    {
      name: 'Event',
      isTitle: true,
      cell: ({ event, isManual, project, stack }) => (
        <span>
          {nameOfEvent(event)}{' '}
          <span className={styles['minor']}>
            {isManual ? 'manual' : ''} {stack === null ? '' : `of ${project}/${stack}`}
          </span>
        </span>
      ),
    },
    { name: 'Result', cell: (delivery) => <DeliveryState delivery={delivery} /> },
    {
      name: 'Duration',
      align: 'right',
      isMinor: true,
      cell: ({ durationMs }) => (durationMs === null ? '' : `${durationMs} ms`),
    },
    { name: 'Sent', align: 'right', cell: ({ at }) => <Time at={at} /> },
    {
      name: 'Actions',
      isActions: true,
      cell: ({ event, id }) => (
        <span className={styles['buttons']}>
          <Button
            size="small"
            kind="quiet"
            aria-expanded={id === chosen}
            aria-label={`${id === chosen ? 'Hide' : 'Show'} the delivery of ${nameOfEvent(event)}`}
            onClick={() => onOpen(id === chosen ? undefined : id)}
          >
            {id === chosen ? 'Hide' : 'Show'}
          </Button>
          <Button
            size="small"
            kind="quiet"
            aria-label={`Send again: ${nameOfEvent(event)}`}
            disabled={redeliver.isPending}
            onClick={() => redeliver.mutate({ ...target, webhook, deliveryId: id })}
          >
            Send again
          </Button>
        </span>
      ),
    },
  ];
  return (
    <>
      {redeliver.error ? <p role="alert">{redeliver.error.message}</p> : null}
      <Table
        {...pagedList(query)}
        label="Deliveries"
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No deliveries yet">
            <p>Send a ping to check whether the receiver responds.</p>
          </Empty>
        }
        details={({ id }) =>
          id === chosen ? <Exchange owner={{ calls, target }} webhook={webhook} deliveryId={id} /> : null
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
        {state === 'waiting' && responseStatus !== null ? 'Retrying after' : word}
        {responseStatus === null ? '' : ` ${responseStatus}`}
      </Badge>
      {attempts > 1 ? <span className={styles['minor']}>{attempts} attempts</span> : null}
    </span>
  );
}

/** The request and the response. */
function Exchange({
  owner: { calls, target },
  ...chosen
}: {
  readonly owner: WebhookOwner;
  readonly webhook: string;
  readonly deliveryId: string;
}) {
  const query = useQuery(calls.delivery.queryOptions({ ...target, ...chosen }));
  if (query.error) return <p role="alert">{query.error.message}</p>;
  const delivery = query.data;
  if (delivery === undefined) return <Skeleton width="60%" />;
  return (
    <div className={styles['exchange']}>
      <Part title="Request" head={delivery.requestHeaders} body={readable(delivery.payload)} />
      <Part
        title={delivery.responseStatus === null ? 'No response' : `Response ${delivery.responseStatus}`}
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
      <section className={styles['text']} tabIndex={0} aria-label={`${title}, as text`}>
        <pre>{text === '' ? 'empty' : text}</pre>
      </section>
    </section>
  );
}

/** JSON with line breaks; other texts as they are. */
function readable(text: string | null): string | null {
  if (text === null) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
