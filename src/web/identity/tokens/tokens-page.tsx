import { getRouteApi } from '@tanstack/react-router';
import { useMe } from '../../platform/app/me.ts';
import { useMayManage } from '../../platform/app/organization-pages.ts';
import { Page } from '../../platform/ui/page.tsx';
import { Tab, Tabs } from '../../platform/ui/tabs.tsx';
import { tokenTexts } from '../texts.tsx';
import { TokenList } from './token-list.tsx';

const route = getRouteApi('/$organization/~/tokens');

/** The organization's tokens are for its admins. */
export function TokensPage() {
  const { organization } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  // The shown tokens depend on the user: replacing the list would close its open dialog.
  const isKnown = useMe() !== undefined;
  const mayManage = useMayManage(organization);
  const isMine = !mayManage || search.of === 'me';
  return (
    <Page title={tokenTexts.tokens} lead={tokenTexts.lead}>
      {mayManage ? (
        <Tabs label={tokenTexts.whose}>
          <Tab to="." search={{}} isChosen={!isMine}>
            {tokenTexts.ofOrganization(organization)}
          </Tab>
          <Tab to="." search={{ of: 'me' }} isChosen={isMine}>
            {tokenTexts.yourOwn}
          </Tab>
        </Tabs>
      ) : null}
      {!isKnown ? null : isMine ? (
        <TokenList key="mine" owner={{ of: 'me' }} />
      ) : (
        <TokenList
          key="organization"
          owner={{ of: 'organization', organization }}
          showsRuns={search.runs === '1'}
          onShowRuns={(shows) => void navigate({ search: { ...search, runs: shows ? '1' : undefined }, replace: true })}
        />
      )}
    </Page>
  );
}
