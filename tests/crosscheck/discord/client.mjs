// discord.js talks to the Discord fake, which was written for another library.
// It prints one line of JSON for each thing that it saw, and ends on "bye".
import { once } from "node:events";
import { Client, Events, GatewayIntentBits, MessageFlags, Options, Partials } from "discord.js";

const [api, token] = process.argv.slice(2);
const say = (what, more = {}) => console.log(JSON.stringify({ what, ...more }));
const fail = (error) => {
  say("error", { message: String(error?.stack ?? error) });
  process.exit(1);
};
process.on("unhandledRejection", fail);
process.on("uncaughtException", fail);

const client = new Client({
  intents: [GatewayIntentBits.Guilds, GatewayIntentBits.GuildMessages, GatewayIntentBits.DirectMessages],
  partials: [Partials.Channel],
  rest: { api, retries: 2, globalRequestsPerSecond: 50 },
  allowedMentions: { parse: [], repliedUser: false },
  makeCache: Options.cacheEverything(),
});

client.on(Events.Error, fail);
client.on(Events.Invalidated, () => say("invalidated"));
client.on(Events.ShardResume, (shard, replayed) => say("resumed", { replayed }));
client.on(Events.ClientReady, (ready) => say("ready", { user: ready.user.id, guilds: ready.guilds.cache.size }));

client.on(Events.MessageCreate, async (message) => {
  if (message.author.id === client.user.id) return;
  say("message", {
    id: message.id,
    content: message.content,
    author: message.author.id,
    bot: message.author.bot,
    webhook: message.webhookId,
    type: message.type,
    mentioned: message.mentions.has(client.user),
    repliedTo: message.mentions.repliedUser?.id ?? null,
    inThread: message.channel.isThread(),
    parent: message.channel.isThread() ? message.channel.parentId : null,
    dm: message.channel.isDMBased(),
  });
  if (message.author.bot || message.webhookId) return;
  try {
    await answer(message);
  } catch (error) {
    say("refused", { code: error.code, status: error.status });
  }
});

async function answer(message) {
  if (message.content.endsWith("bye")) {
    say("bye");
    await client.destroy();
    return;
  }
  if (message.content.endsWith("too long")) {
    await message.channel.send("x".repeat(2001));
    return;
  }
  if (message.content.endsWith("ping all")) {
    await message.channel.send({ content: "hello", allowedMentions: { parse: ["everyone"] } });
    return;
  }
  await message.react("\u{1F440}");
  await message.channel.sendTyping();
  if (message.channel.isThread() || message.channel.isDMBased()) {
    const reply = await message.reply({ content: "a reply", flags: MessageFlags.SuppressEmbeds });
    say("replied", { id: reply.id, to: reply.reference?.messageId });
    return;
  }
  const thread = await message.startThread({ name: "a thread", autoArchiveDuration: 1440 });
  const sent = await thread.send({ content: "an answer", nonce: "n-" + message.id, enforceNonce: true, flags: MessageFlags.SuppressEmbeds });
  const again = await thread.send({ content: "an answer", nonce: "n-" + message.id, enforceNonce: true, flags: MessageFlags.SuppressEmbeds });
  const changed = once(client, Events.MessageUpdate);
  await sent.edit({ content: "an edited answer" });
  const [, now] = await changed;
  const gone = once(client, Events.MessageDelete);
  const extra = await thread.send({ content: "working on it" });
  await extra.delete();
  const [dead] = await gone;
  const refusal = await message.delete().then(() => 0, (error) => error.code);
  const held = await thread.messages.fetch({ limit: 10 });
  const member = await message.guild.members.fetch({ user: message.author.id, force: true });
  const left = await message.guild.members.fetch({ user: "9", force: true }).then(() => 0, (error) => error.code);
  say("member", { author: member.id, roles: member._roles, refusal: left });
  say("answered", { thread: thread.id, parent: thread.parentId, same: sent.id === again.id, held: [...held.values()].map((m) => m.content), changed: now.content, gone: dead.id === extra.id, refusal });
}

client.login(token).catch(fail);
