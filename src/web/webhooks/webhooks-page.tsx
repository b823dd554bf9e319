import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { EmbedList } from '../embeds/embed-list.tsx';
import { Page, Section } from '../platform/ui/page.tsx';
import { HookMark } from './hook-mark.tsx';
import { webhooksTexts } from './texts.tsx';
import { AddWebhook, WebhookList } from './webhook-list.tsx';
import { ofOrganization } from './webhook-owner.ts';

const route = getRouteApi('/$organization/~/webhooks');

export function WebhooksPage() {
  const { organization } = route.useParams();
  const navigate = useNavigate();
  const owner = ofOrganization(organization);
  const to = '/$organization/~/webhooks/$webhook' as const;
  return (
    <Page
      title={webhooksTexts.title}
      lead={webhooksTexts.lead}
      actions={
        <AddWebhook owner={owner} onMade={(webhook) => void navigate({ to, params: { organization, webhook } })} />
      }
    >
      <WebhookList
        owner={owner}
        linkTo={({ displayName, name }) => (
          <>
            <Link to={to} params={{ organization, webhook: name }}>
              {displayName}
            </Link>{' '}
            <HookMark owner={owner} name={name} />
          </>
        )}
      />
      <Section title={webhooksTexts.feeds} lead={webhooksTexts.feedsLead}>
        <EmbedList owner={{ organization }} />
      </Section>
    </Page>
  );
}
