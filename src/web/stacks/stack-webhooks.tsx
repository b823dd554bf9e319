import { getRouteApi, Link } from '@tanstack/react-router';
import type { StackRef } from '../platform/app/procedure-types.ts';
import type { StackPageSearch } from '../platform/app/stack-search.ts';
import { Section } from '../platform/ui/page.tsx';
import { HookMark } from '../webhooks/hook-mark.tsx';
import { AddWebhook, WebhookList } from '../webhooks/webhook-list.tsx';
import { ofStack } from '../webhooks/webhook-owner.ts';
import { WebhookView } from '../webhooks/webhook-page.tsx';
import { stackWebhookTexts } from './stack/texts.tsx';

const route = getRouteApi('/$organization/$project/$stack');

/** The webhooks of a stack, or one of them. */
export function StackWebhooks({ search, stack }: { readonly stack: StackRef; readonly search: StackPageSearch }) {
  const navigate = route.useNavigate();
  const owner = ofStack(stack);
  const tab = 'webhooks' as const;
  const { delivery, webhook } = search;
  if (webhook !== undefined)
    return (
      <>
        <p>
          <Link to="." search={{ tab }} activeOptions={{ exact: true }}>
            {stackWebhookTexts.all}
          </Link>
        </p>
        <WebhookView
          key={webhook}
          owner={owner}
          name={webhook}
          delivery={delivery}
          onOpen={(id) => void navigate({ search: { tab, webhook, delivery: id }, replace: true, resetScroll: false })}
          onRemoved={() => navigate({ search: { tab } })}
        />
      </>
    );
  return (
    <Section
      title={stackWebhookTexts.title}
      lead={stackWebhookTexts.lead}
      actions={<AddWebhook owner={owner} onMade={(name) => void navigate({ search: { tab, webhook: name } })} />}
    >
      <WebhookList
        owner={owner}
        linkTo={({ displayName, name }) => (
          <>
            <Link to="." search={{ tab, webhook: name }}>
              {displayName}
            </Link>{' '}
            <HookMark owner={owner} name={name} />
          </>
        )}
      />
    </Section>
  );
}
