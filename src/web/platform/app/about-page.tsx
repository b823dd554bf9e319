import { useEffect } from 'react';
import { pageTexts } from '../texts.tsx';
import { Code } from '../ui/code.tsx';
import { ExternalLink } from '../ui/external-link.tsx';
import { FactList, FactRow } from '../ui/fact-list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Skeleton } from '../ui/skeleton.tsx';
import { useMe } from './me.ts';
import { aboutTexts } from './texts.tsx';

export function AboutPage() {
  const me = useMe();
  useEffect(() => {
    document.title = pageTexts.tabTitle(pageTexts.about);
  }, []);
  return (
    <Page title={aboutTexts.title} lead={aboutTexts.lead}>
      <FactList>
        <FactRow name={aboutTexts.version}>
          {me === undefined ? <Skeleton width={48} /> : <code>{me.version}</code>}
        </FactRow>
        <FactRow name={aboutTexts.license}>
          <ExternalLink href="https://www.apache.org/licenses/LICENSE-2.0">{aboutTexts.licenseName}</ExternalLink>
        </FactRow>
        <FactRow name={aboutTexts.api}>
          <a href="/api/openapi.json">{aboutTexts.apiDescription}</a>
        </FactRow>
        <FactRow name={aboutTexts.account}>
          <a href="/account">{aboutTexts.sessions}</a>
        </FactRow>
      </FactList>
      <Section title={aboutTexts.logIn}>
        <Code>{`pulumi login ${location.origin}`}</Code>
      </Section>
    </Page>
  );
}
