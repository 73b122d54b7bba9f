// A small bot on Slack's own library. It talks to the stand-in at the address in
// its arguments, answers each mention in its thread, and looks at the answers
// that it gets as strictly as the library's types do.
import assert from 'node:assert/strict';
import { App, LogLevel } from '@slack/bolt';

const [api, token, appToken] = process.argv.slice(2);
const app = new App({
  token, appToken, socketMode: true, logLevel: LogLevel.WARN,
  clientOptions: { slackApiUrl: `${api}/`, retryConfig: { retries: 2, minTimeout: 50, maxTimeout: 100 } },
});

app.event('app_mention', async ({ event, body, client }) => {
  assert.equal(body.type, 'event_callback');
  assert.match(body.event_id, /^Ev/);
  assert.equal(body.authorizations[0].is_bot, true);
  const { user } = await client.users.info({ user: event.user });
  assert.equal(user.id, event.user);
  assert.equal(typeof user.team_id, 'string');
  // Disabled groups are left out, and so are members, unless one asks for them.
  const { usergroups } = await client.usergroups.list({ include_users: true, team_id: user.team_id });
  assert.deepEqual(usergroups.map((g) => [g.id, g.team_id, g.date_delete, g.users]), [['S0TEAM0001', user.team_id, 0, [event.user]]]);
  assert.equal((await client.usergroups.list({ include_disabled: true })).usergroups.find((g) => g.date_delete > 0).users, undefined);
  await assert.rejects(client.usergroups.list({ team_id: 'T0OTHER01' }), /team_not_found/);
  const { channel } = await client.conversations.info({ channel: event.channel });
  assert.equal(channel.id, event.channel);
  await client.reactions.add({ channel: event.channel, timestamp: event.ts, name: 'eyes' });
  const said = await client.chat.postMessage({
    channel: event.channel, thread_ts: event.ts, text: 'from bolt', unfurl_links: false, unfurl_media: false,
    metadata: { event_type: 'crosscheck', event_payload: { part: 0 } },
  });
  await client.chat.update({ channel: said.channel, ts: said.ts, text: 'from bolt, edited' });
  const extra = await client.chat.postMessage({ channel: event.channel, thread_ts: event.ts, text: 'working on it' });
  const gone = await client.chat.delete({ channel: extra.channel, ts: extra.ts });
  assert.equal(gone.ts, extra.ts);
  await assert.rejects(client.chat.delete({ channel: extra.channel, ts: extra.ts }), /message_not_found/);
  await assert.rejects(client.chat.delete({ channel: event.channel, ts: event.ts }), /cant_delete_message/);
  await assert.rejects(client.chat.update({ channel: event.channel, ts: event.ts, text: 'x' }), /cant_update_message/);
  const thread = await client.conversations.replies({ channel: event.channel, ts: event.ts, include_all_metadata: true });
  assert.equal(thread.messages.at(-1).metadata.event_type, 'crosscheck');
  await assert.rejects(client.chat.postMessage({ channel: 'C0NOWHERE0', text: 'x' }), /channel_not_found/);
  await assert.rejects(client.chat.postMessage({ channel: event.channel, text: 'x'.repeat(40_001) }), /msg_too_long/);
  console.log(`answered ${event.ts}`);
});

app.error(async (error) => {
  console.log(`failed ${error.original?.message ?? error.message}`);
});

process.stdin.on('end', async () => {
  await app.stop();
  process.exit(0);
}).resume();

const who = await app.client.auth.test();
assert.match(who.team_id, /^T/);
await app.start();
console.log(`ready ${who.user_id}`);
